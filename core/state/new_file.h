// new_file.h: a file that takes the place of the former one in one step, so that after a crash at any point one of the
// two is found, undamaged.
//
// No file is ever truncated or written in place: who maps the former one keeps its pages.
#pragma once

#include "core/state/temporary.h"

#include <memory>
#include <string>

namespace yoke {

// The path that a path is in the end, where links lead; what is there, if anything, is a file. A status of mode 0 where
// nothing is.
std::string target_of(const char *call, std::string path, struct stat *status);

// A new file, written from its beginning to its end. The disk begins on each kWriteBehind bytes while the next ones are
// copied to the page cache, so that finish waits for the last of them alone.
class FileWriter {
public:
    FileWriter(const char *call, std::string path, Descriptor file);

    static constexpr size_t kWriteBehind = size_t{8} << 20;

    void write(const void *from, size_t bytes);
    uint64_t bytes() const { return bytes_; }
    // All that was written is on the disk behind this, or it raises. After any failure the data counts as lost: the
    // system drops pages that it could not write, and a second fsync would not tell.
    void finish();
    bool is_finished() const { return !file_.is_open() && !is_lost_; }

private:
    void check_open() const;
    void start_sync();
    [[noreturn]] void fail_lost(const char *what, int error);

    const char *call_;
    std::string path_;
    Descriptor file_;
    uint64_t bytes_ = 0, started_ = 0;  // written, and of these on their way to the disk
    bool is_lost_ = false;
};

// A file that takes the place of `path` once it is whole. Behind a link it is the file that the link names, there or
// not. A file that is there keeps its permissions; what is no file is refused.
class NewFile {
public:
    // `former`: whose permissions it gets where nothing is at `path`; null, or of mode 0: nobody's.
    NewFile(const char *call, const std::string &path, const struct stat *former = nullptr);

    const Descriptor &folder() const { return folder_; }
    const std::string &name() const { return name_; }
    const Temporary &temporary() const { return *temporary_; }
    // Another new file in its folder, under a name that nothing has, with its permissions.
    FileWriter create_beside(const std::string &name) const;
    // Whether it has taken its place, which a failure may follow.
    bool is_in_place() const { return is_in_place_; }

    void write(const void *from, size_t bytes) { writer_->write(from, bytes); }
    uint64_t bytes() const { return writer_->bytes(); }
    // The new file is on the disk, and is found there, behind this. Where it raises, the former one is whole; only a
    // failure of the very last step, which makes the new name last, comes when the new one is in place already.
    void commit();

private:
    Descriptor open_new(const char *name) const;
    void keep_mode(const Descriptor &file) const;

    const char *call_;
    std::string path_, name_;
    mode_t mode_ = 0;  // the one to keep
    bool keeps_mode_ = false, is_in_place_ = false;
    Descriptor folder_;
    std::unique_ptr<Temporary> temporary_;
    std::unique_ptr<FileWriter> writer_;
};

}  // namespace yoke
