// File descriptor of a communicator, closed with its owner, and closed at once in a forked child.
//
// Contract
//  * If a child kept a copy of a rank's connection, the rank would look alive after its death. So close_in_child
//    knows every descriptor of this class and closes all descriptors in the child. On exec, close-on-exec flags close
//    the descriptors.
//  * No descriptor has the number of a standard stream.
//  * A child never touches inherited objects. Objects made before a fork release neither descriptors nor mappings in
//    the child: the descriptors' numbers may belong to other files by then. A child does not get mappings
//    (MADV_DONTFORK), or gets private copies (Inherited).
#pragma once

#include <cstdint>

namespace yoke::cpu::comm {

// Returns the number of forks between the process that loaded the library and this process.
uint32_t generation();
void close_in_child();

// Scope without forks, in which a descriptor is opened and registered for close_in_child.
class Unforked {
public:
    Unforked();
    ~Unforked();  // errno stays
    Unforked(const Unforked &) = delete;
    Unforked &operator=(const Unforked &) = delete;
};

class Descriptor {
public:
    Descriptor() = default;
    explicit Descriptor(int fd) { reset(fd); }
    // Returns the descriptor opened by `make`. `make` must not wait; it returns -1 on a failure.
    template <class Make>
    static Descriptor made(Make &&make)
    {
        const Unforked unforked;
        return Descriptor(make());
    }
    ~Descriptor() { reset(); }
    Descriptor(Descriptor &&other) noexcept : fd_(other.fd_), generation_(other.generation_)
    {
        other.fd_ = -1;
    }
    Descriptor &operator=(Descriptor &&other) noexcept;

    void reset(int fd = -1);
    int get() const { return fd_; }
    explicit operator bool() const { return fd_ >= 0; }

private:
    int fd_ = -1;
    uint32_t generation_ = 0;
};

}  // namespace yoke::cpu::comm
