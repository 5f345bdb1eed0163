// file_calls.h: the system calls of state files.
//
// A failed system call raises an Error of YOKE_E_IO with call, path and the system's text, and the errno as native
// code. A call interrupted by a signal is repeated. Folders are held open, so a change of the working directory
// between two calls has no effect.
#pragma once

#include "core/base/descriptor.h"
#include "core/base/error.h"

#include <sys/stat.h>
#include <sys/types.h>

#include <cerrno>
#include <string>
#include <vector>

namespace yoke {

// Call that is repeated if a signal interrupts it before any effect.
template <class Signature>
class FileCall;  // file_calls.cpp lists the signatures
template <class Result, class... Args>
class FileCall<Result(Args...)> {
public:
    constexpr FileCall() = default;
    template <class Function>
    constexpr FileCall(Function function) : call_(function)
    {
    }
    Result operator()(Args... args) const;

private:
    Result (*call_)(Args...) = nullptr;
};

// Every system call of state files. On failure, each returns -1 (mmap: MAP_FAILED) and sets errno. A `folder` is a
// descriptor, or AT_FDCWD.
struct FileCalls {
    FileCall<int(int folder, const char *path, int flags, mode_t mode)> open;
    int (*close)(int file);
    FileCall<int(int folder, const char *path, struct stat *to, int flags)> status;
    FileCall<int(int file, struct stat *to)> file_status;
    FileCall<ssize_t(int folder, const char *path, char *to, size_t bytes)> read_link;
    FileCall<int(int file, mode_t mode)> chmod;
    FileCall<ssize_t(int file, void *to, size_t bytes, off_t from)> pread;
    FileCall<ssize_t(int file, const void *from, size_t bytes)> write;
    FileCall<ssize_t(int file, const void *from, size_t bytes, off_t to)> pwrite;
    // Begins to write a range to the disk, without a wait. The call is a hint; a system may not support it.
    FileCall<int(int file, uint64_t from, uint64_t bytes)> start_sync;
    FileCall<int(int file)> fsync;
    FileCall<int(int folder, const char *from, const char *to)> rename;
    // Exchanges both names in one step.
    FileCall<int(int folder, const char *one, const char *other)> exchange;
    FileCall<int(int folder, const char *name)> unlink;
    FileCall<int(int folder, const char *name, mode_t mode)> mkdir;
    FileCall<int(int folder, const char *name)> rmdir;
    FileCall<int(int folder, std::vector<std::string> *names)> list;  // without "." and ".."
    void *(*mmap)(size_t bytes, int protection, int flags, int file);
    int (*munmap)(void *begin, size_t bytes);
    FileCall<int(int file, int how)> flock;
    int (*kill)(pid_t process, int signal);
    FileCall<int(const char *path, std::string *to)> real_path;  // where all links lead
};
const FileCalls &file_calls();
// Replaces the system's calls, for tests; null restores the system's calls.
void set_file_calls(const FileCalls *calls);

[[noreturn]] void fail_io(const char *call, const char *what, const std::string &path, int error);

// Closes a file by file_calls(). A Descriptor is an open file or folder, closed by this function.
int close_file(int file);
using Descriptor = OwnedDescriptor<close_file>;

struct FilePlace {
    std::string folder, name;
};
// Splits a path into folder and name. "a/b" is "b" in "a", and "b" is in ".". If the path ends with a slash, the name
// is "".
FilePlace place_of(const std::string &path);

// Opens a folder. On failure, opened_folder() returns a closed descriptor and sets errno; open_folder() raises
// YOKE_E_IO.
Descriptor opened_folder(const std::string &path);
Descriptor open_folder(const char *call, const std::string &path);
// Returns the names in a folder, without "." and "..". Raises YOKE_E_IO if the system refuses.
std::vector<std::string> list_folder(const char *call, const std::string &path);

// Waits until the file is on the disk. Returns 0 or an errno. If the file system does not support the call, notes
// this and returns 0.
int sync_file(const Descriptor &file);
int sync_folder(const Descriptor &folder);
// Renames an entry of the folder. Returns 0 or an errno.
int rename_in(const Descriptor &folder, const char *from, const std::string &to);

// Raises YOKE_E_IO for a failed rename to the final name, with advice for the errno.
[[noreturn]] void fail_move(const char *call, const std::string &path, int error);

}  // namespace yoke
