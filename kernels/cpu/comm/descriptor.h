// A file descriptor of a communicator, closed with its owner, and closed at once in a forked child.
//
// Contract
//  * A child that kept a copy of a rank's connection would make the rank look alive after its death. So every
//    descriptor here is known to close_in_child, which ends all of them in the child; they close on exec by their
//    flags.
//  * None has the number of a standard stream.
//  * What a child inherits it never touches again: objects made before a fork let go of nothing there, neither
//    descriptors, whose numbers may be others' by then, nor mappings, which no child gets (MADV_DONTFORK), or as copies
//    of its own (Inherited).
#pragma once

#include <cstdint>

namespace yoke::cpu::comm {

// How many forks lie between this process and the one that loaded the library.
uint32_t generation();
void close_in_child();

// In its scope no fork comes between a descriptor and its place among those that close_in_child knows.
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
    // `make` returns it, or -1, and takes no time.
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
