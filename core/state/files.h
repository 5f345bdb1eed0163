// files.h: how state comes to the disk whole, and from there: a new file or folder takes the place of the former one in
// one step, so that after a crash at any point one of the two is found, undamaged.
//
// No file is ever truncated or written in place: who maps the former one keeps its pages. Every call of the system that
// fails is an Error of YOKE_E_IO with call, path and the system's text, and its errno as native code; one that a signal
// interrupts is made again. Folders are held open, so that a change of the working directory between two calls changes
// nothing.
#pragma once

#include "core/base/descriptor.h"
#include "core/base/error.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

// ---- What is asked of the system --------------------------------------------------------------------------------

// Every call that files of state make: -1 (mmap: MAP_FAILED) and errno where it fails. A `folder` is a descriptor, or
// AT_FDCWD.
struct FileCalls {
    int (*open)(int folder, const char *path, int flags, mode_t mode);
    int (*close)(int file);
    int (*status)(int folder, const char *path, struct stat *to, int flags);
    int (*file_status)(int file, struct stat *to);
    ssize_t (*read_link)(int folder, const char *path, char *to, size_t bytes);
    int (*chmod)(int file, mode_t mode);
    ssize_t (*pread)(int file, void *to, size_t bytes, off_t from);
    ssize_t (*write)(int file, const void *from, size_t bytes);
    ssize_t (*pwrite)(int file, const void *from, size_t bytes, off_t to);
    // Begins to write a range to the disk, and does not wait for it: a hint, which a system may lack.
    int (*start_sync)(int file, uint64_t from, uint64_t bytes);
    int (*fsync)(int file);
    int (*rename)(int folder, const char *from, const char *to);
    int (*exchange)(int folder, const char *one, const char *other);  // both names, in one step
    int (*unlink)(int folder, const char *name);
    int (*mkdir)(int folder, const char *name, mode_t mode);
    int (*rmdir)(int folder, const char *name);
    int (*list)(int folder, std::vector<std::string> *names);  // without "." and ".."
    void *(*mmap)(size_t bytes, int protection, int flags, int file);
    int (*munmap)(void *begin, size_t bytes);
    int (*flock)(int file, int how);
    int (*kill)(pid_t process, int signal);
    int (*real_path)(const char *path, std::string *to);  // where all links lead
};
const FileCalls &file_calls();
// Others in place of the system's, for tests; null puts those back.
void set_file_calls(const FileCalls *calls);

[[noreturn]] void fail_io(const char *call, const char *what, const std::string &path, int error);

// An open file or folder, closed by file_calls().
int close_file(int file);
using Descriptor = OwnedDescriptor<close_file>;

// ---- Writing ----------------------------------------------------------------------------------------------------

// A name beside `target`, `.TARGET.yoke-PID-RANDOM.tmp`, and what stands there. What is still there at the end goes;
// after a kill the next one that writes the same target finds by the name that its writer is no more.
class Temporary {
public:
    Temporary(const Descriptor &folder, std::string_view target);
    ~Temporary();
    Temporary(const Temporary &) = delete;
    Temporary &operator=(const Temporary &) = delete;

    const char *name() const { return name_.c_str(); }
    std::string digits() const;  // the first eight of RANDOM
    void made() { is_there_ = true; }
    void gone() { is_there_ = false; }

private:
    const Descriptor &folder_;
    std::string name_;
    pid_t owner_;  // a forked child leaves it alone
    bool is_there_ = false;
};

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

// A folder of files that takes the place of PARENT/NAME once it is whole.
class NewFolder {
public:
    NewFolder(const char *call, const std::string &parent, const std::string &name);

    // A file in it, to be written; finish it when all of it is there, or leave that to commit.
    FileWriter &create(const std::string &name);
    // As NewFile's; then the former folder is removed.
    void commit();

private:
    void put_in_place();
    void set_aside();
    void move();
    void check_files_move();
    void move_files();
    int make_folder_for(const std::string &file);
    int sync_inside();

    const char *call_;
    std::string path_, name_;
    std::string former_;  // where that is meanwhile, if there is one
    Descriptor parent_;
    Temporary temporary_;
    Descriptor folder_;
    std::vector<std::string> names_;
    std::vector<std::unique_ptr<FileWriter>> files_;
};

// At no moment a part of it is found under its name.
void remove_folder(const char *call, const std::string &path);

// The folders of a folder, by name: those that were set aside for a new one, which did not come to its place before a
// crash, under their own name too.
struct FoundFolder {
    std::string name;   // "step-4"
    std::string place;  // where it is: "step-4" or ".step-4.yoke-old"
};
std::vector<FoundFolder> find_folders(const char *call, const std::string &parent);
// Of the entries of a folder.
std::vector<FoundFolder> find_folders(const std::vector<std::string> &entries);

// Makes a folder, and those above it that are missing; all are found after a crash.
void make_folders(const char *call, const std::string &path);

// Removes what writers that are no more left beside a target, or beside any target where `name` is empty. What cannot
// be removed stays.
void remove_leftovers(const std::string &folder, std::string_view name);

// ---- Reading ----------------------------------------------------------------------------------------------------

// A file as memory: pages are read when they are touched, and private when they are written.
class MappedFile {
public:
    MappedFile(void *data, size_t bytes) : data_(data), bytes_(bytes) {}
    ~MappedFile();
    MappedFile(const MappedFile &) = delete;
    MappedFile &operator=(const MappedFile &) = delete;

    char *data() const { return static_cast<char *>(data_); }  // null where it has no bytes
    size_t size() const { return bytes_; }

private:
    void *data_;
    size_t bytes_;
};

class ReadFile {
public:
    ReadFile(const char *call, std::string path);
    ReadFile(const char *call, const Descriptor &folder, std::string name);

    uint64_t size() const { return status_.bytes; }
    void read(uint64_t from, void *to, size_t bytes) const;
    // Null, and errno, where the system does not map it: its file system cannot (ENODEV), or there is no address space
    // or no room for one more map (ENOMEM). It can be read all the same.
    std::shared_ptr<MappedFile> map() const;
    // Closes it while it is not used: a process may have few files open. Of a file at a whole path; where another one
    // has taken its place meanwhile, its next use raises YOKE_E_IO.
    void rest();

private:
    struct Status {
        uint64_t bytes = 0, device = 0, number = 0;
        bool operator==(const Status &) const = default;
    };

    ReadFile(const char *call, int folder, std::string path);
    Descriptor opened(int folder) const;
    Status status_of(const Descriptor &file) const;
    // Open, itself or in `again`.
    const Descriptor &awake(Descriptor &again) const;

    const char *call_;
    std::string path_;
    Descriptor file_;
    Status status_;
};

// One writer a folder: while this lives, another one is refused with YOKE_E_STATE and told the process that writes
// there. Where the file system has no locks, nobody is refused: core/state/lacks.h.
class FolderLock {
public:
    FolderLock(const char *call, const std::string &folder);
    ~FolderLock();
    FolderLock(const FolderLock &) = delete;
    FolderLock &operator=(const FolderLock &) = delete;

    // Whether it locks the folder that is at its path now: one that was removed and made anew is another's to lock.
    bool is_in_place(const char *call) const;
    // In a forked child: a worker that outlives its parent must not hold the folder for it.
    void forget() { file_.close(); }

private:
    void take(const char *call, const std::string &folder) const;
    void write_owner(const char *call) const;
    [[noreturn]] void refuse(const char *call, const std::string &folder) const;

    std::string path_;
    Descriptor file_;
    pid_t owner_;  // a forked child does not let go of it
};

}  // namespace yoke
