// new_file.h: a file that replaces the former file in one step. After a crash at any point, either file is there,
// undamaged.
//
// No file is ever truncated or written in place: a process that maps the former file keeps its pages.
#pragma once

#include "core/state/temporary.h"

#include <memory>
#include <string>

namespace yoke {

// Returns the final path behind all links, and the status of the entry there. If there is no entry, the status has
// mode 0. Raises YOKE_E_IO if the entry is no regular file.
std::string target_of(const char *call, std::string path, struct stat *status);

// New file, written from beginning to end. The disk starts on each kWriteBehind bytes while the next bytes are copied
// to the page cache. So finish() waits only for the last bytes.
class FileWriter {
public:
    FileWriter(const char *call, std::string path, Descriptor file);

    static constexpr size_t kWriteBehind = size_t{8} << 20;

    void write(const void *from, size_t bytes);
    uint64_t bytes() const { return bytes_; }
    // Waits until all data is on the disk, then closes the file. After any failure, raises, and the data counts as
    // lost: the system drops pages that it could not write, and a second fsync would not report the loss.
    void finish();
    bool is_finished() const { return !file_.is_open() && !is_lost_; }

private:
    void check_open() const;
    void start_sync();
    [[noreturn]] void fail_lost(const char *what, int error);

    const char *call_;
    std::string path_;
    Descriptor file_;
    uint64_t bytes_ = 0, started_ = 0;  // bytes written, and bytes on their way to the disk
    bool is_lost_ = false;
};

// File that replaces `path` once complete. If `path` is a link, the file replaces the link's target, existing or not.
// An existing file keeps its permissions; any other kind of entry is refused.
class NewFile {
public:
    // Begins a temporary file beside `path`, and removes leftovers of killed writers. `former`: source of the
    // permissions if there is no entry at `path`. Null, or mode 0: no source.
    NewFile(const char *call, const std::string &path, const struct stat *former = nullptr);

    const Descriptor &folder() const { return folder_; }
    const std::string &name() const { return name_; }
    const Temporary &temporary() const { return *temporary_; }
    // Creates another new file in the folder, under an unused name, with the same permissions.
    FileWriter create_beside(const std::string &name) const;
    // Returns whether the file has its final name. A failure may follow.
    bool is_in_place() const { return is_in_place_; }

    void write(const void *from, size_t bytes) { writer_->write(from, bytes); }
    uint64_t bytes() const { return writer_->bytes(); }
    // Finishes the file and puts it in place. After the return, the new file is on the disk under its name. If the
    // call raises, the former file is whole, except after a failure of the very last step, which makes the new name
    // permanent: the new file is then in place already.
    void commit();

private:
    Descriptor open_new(const char *name) const;
    void keep_mode(const Descriptor &file) const;

    const char *call_;
    std::string path_, name_;
    mode_t mode_ = 0;  // mode to keep
    bool keeps_mode_ = false, is_in_place_ = false;
    Descriptor folder_;
    std::unique_ptr<Temporary> temporary_;
    std::unique_ptr<FileWriter> writer_;
};

}  // namespace yoke
