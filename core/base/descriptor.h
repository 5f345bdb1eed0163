// descriptor.h: a file descriptor closed with its owner. The descriptor never has the number of a standard stream: if
// that stream is closed, output of the host program would go to the file.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace yoke {

// Returns `file`; if its number is a standard stream's, moves the file to another number. Returns -1 and sets errno
// if the system has no free number, or `file` is not open. The classes below and Socket do this themselves.
inline int above_standard(int file) noexcept
{
    if (file < 0 || file > STDERR_FILENO) return file;
    const int moved = fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int failure = errno;
    ::close(file);
    errno = failure;
    return moved;
}

// Owner of a file descriptor. `close_file` is the system's close(), or its replacement in tests. `is_hosts`: the host
// program prints through the same table of descriptors.
template <int (*close_file)(int), bool is_hosts = true>
class OwnedDescriptor {
public:
    explicit OwnedDescriptor(int file = -1) noexcept : file_(is_hosts ? above_standard(file) : file)
    {
    }
    ~OwnedDescriptor() { close(); }
    OwnedDescriptor(OwnedDescriptor &&other) noexcept : file_(other.release()) {}
    OwnedDescriptor &operator=(OwnedDescriptor &&other) noexcept
    {
        if (this != &other) {
            close();
            file_ = other.release();
        }
        return *this;
    }

    int get() const noexcept { return file_; }
    bool is_open() const noexcept { return file_ >= 0; }
    int release() noexcept { return std::exchange(file_, -1); }
    // Closes the file. Returns 0 or an errno; the file is closed in any case.
    int close() noexcept
    {
        if (file_ < 0) return 0;
        // Interrupted or not, the number may be another file's at once.
        return close_file(release()) == 0 || errno == EINTR ? 0 : errno;
    }

private:
    int file_;
};

using OwnedFile = OwnedDescriptor<::close>;

}  // namespace yoke
