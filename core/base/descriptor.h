// descriptor.h: a descriptor of the system that is closed with the object that has it.
#pragma once

#include <unistd.h>

#include <cerrno>
#include <utility>

namespace yoke {

// `close_file` is the system's close(), or what stands for it in tests.
template <int (*close_file)(int)>
class OwnedDescriptor {
public:
    explicit OwnedDescriptor(int file = -1) noexcept : file_(file) {}
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
    // 0 or an errno; it is closed in any case.
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
