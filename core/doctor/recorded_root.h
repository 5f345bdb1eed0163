// recorded_root.h: the files of the machine, or of another root (YOKE_SYSROOT), as the doctor reads them.
//
// All reads are bounded and none can block. What was read is remembered, so that a recording holds exactly what the
// checks rested on.
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

    // The first `limit` bytes of a file; nullopt when it is absent or may not be read.
    std::optional<std::string> text(const std::string &path, size_t limit = kLargest);
    // The same without blanks and line ends around it, "" for none.
    std::string line(const std::string &path);
    // Names in a folder, sorted; none when it is absent.
    std::vector<std::string> list(const std::string &path);
    // What a symbolic link points to, its last part; "" for none.
    std::string link(const std::string &path);
    bool exists(const std::string &path);
    // The last `limit` bytes of a file, "" when there are none. Not remembered.
    static std::string end_of(const std::string &path, size_t limit);
    // The kernel's log since it started, newest last, of which lines about GPUs, their bus and suspend: /dev/kmsg, else
    // the log files. nullopt: none may be read.
    std::optional<std::string> kernel_log();
    // How a device file may be used: nullopt when it is absent, or a folder.
    struct Node {
        std::string mode;  // "0660 root:video"
        bool granted;      // this process may read and write it
    };
    std::optional<Node> node(const std::string &path);
    // The number of what went wrong with the last text(), 0 for nothing.
    int problem() const { return problem_; }
    // The text behind a marker in a file, the first that holds a word; "" when there is none in the first 64 MiB.
    std::string text_behind(const std::string &path, const std::string &marker, size_t length,
                            const std::string &word = "");

    // Has a recording hold this text for a path instead: less of what was read, or what no file tells.
    void note(const std::string &path, const std::string &text) { texts_[path] = text; }

    // Everything read so far, for a recording: the texts of files, and paths that are there.
    const std::map<std::string, std::string> &texts() const { return texts_; }
    const std::map<std::string, std::string> &links() const { return links_; }
    const std::set<std::string> &present() const { return present_; }

    // Whether this is not the machine's own root.
    static bool is_foreign();

private:
    std::map<std::string, std::string> texts_, links_;
    std::set<std::string> present_;
    int problem_ = 0;
};

}  // namespace yoke::doctor
