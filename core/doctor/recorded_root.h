// recorded_root.h: the files of the machine, or of another root (YOKE_SYSROOT), for the doctor.
//
// All reads are bounded, and none can block. The root remembers every read, so a recording holds exactly the facts of
// the checks.
#pragma once

#include "core/doctor/lines.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace yoke::doctor {

class RecordedRoot {
public:
    static constexpr size_t kLargest = 256 * 1024;

    // Returns the first `limit` bytes of a file; nullopt if the file is missing or may not be read.
    std::optional<std::string> text(const std::string &path, size_t limit = kLargest);
    // Returns the text without blanks and line ends around, "" for a missing file.
    std::string line(const std::string &path);
    // Returns the sorted names in a folder; empty if the folder is missing.
    std::vector<std::string> list(const std::string &path);
    // Returns the last part of a symbolic link's target; "" if there is no link.
    std::string link(const std::string &path);
    bool exists(const std::string &path);
    // Returns the last `limit` bytes of a file, or "". Not remembered.
    static std::string end_of(const std::string &path, size_t limit);
    // Returns the kernel's log since its start, newest last, reduced to lines about GPUs, their bus and suspend. The
    // source is /dev/kmsg, else the log files. Returns nullopt if no source may be read.
    std::optional<std::string> kernel_log();
    // Permissions of a device file.
    struct Node {
        std::string mode;  // "0660 root:video"
        bool granted;      // readable and writable for this process
    };
    // Returns the permissions of a device file; nullopt if the file is missing, or a folder.
    std::optional<Node> node(const std::string &path);
    // Returns the errno of the last text(), 0 for success.
    int problem() const { return problem_; }
    // Returns the text after a marker in a file, at most `length` bytes. Of several texts, returns the first text
    // with `word`; "" if the first 64 MiB have none.
    std::string text_behind(const std::string &path, const std::string &marker, size_t length,
                            const std::string &word = "");

    // Replaces the recorded text of a path: by a shorter text, or by a fact without a file.
    void note(const std::string &path, const std::string &text) { texts_[path] = text; }

    // Return everything read so far, for a recording: texts of files, targets of links, and existing paths.
    const std::map<std::string, std::string> &texts() const { return texts_; }
    const std::map<std::string, std::string> &links() const { return links_; }
    const std::set<std::string> &present() const { return present_; }

    // Returns whether YOKE_SYSROOT names another root than the machine's own.
    static bool is_foreign();

private:
    std::map<std::string, std::string> texts_, links_;
    std::set<std::string> present_;
    int problem_ = 0;
};

}  // namespace yoke::doctor
