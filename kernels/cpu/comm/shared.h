// Memory that several processes share: a memfd, which no path names, so that nothing is left when a process is killed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/comm/descriptor.h"
#include "kernels/cpu/comm/failure.h"

namespace yoke::cpu::comm {

// Addresses, given back with their owner.
class Mapping {
public:
    Mapping() = default;
    Mapping(void *data, size_t bytes) : data_(data), bytes_(bytes), generation_(generation()) {}
    ~Mapping() { reset(); }
    Mapping(Mapping &&other) noexcept { *this = static_cast<Mapping &&>(other); }
    Mapping &operator=(Mapping &&other) noexcept;

    void reset();
    char *data() const { return static_cast<char *>(data_); }
    size_t bytes() const { return bytes_; }
    explicit operator bool() const { return data_ != nullptr; }

private:
    void *data_ = nullptr;
    size_t bytes_ = 0;
    uint32_t generation_ = 0;
};

// A page, which sizes and offsets here are multiples of.
size_t page_bytes();

// Memory for others to map. All of it is there when this returns: a shortage is a status here, not a fault at a touch.
// Its size is sealed, so that none who has it can take it from under the others.
yoke_status make_shared(size_t bytes, Descriptor *out);

// Whether this system can: asked before a peer counts on it.
bool can_share();

yoke_status map_shared(int fd, size_t offset, size_t bytes, Mapping *out);

// A mapping that a forked child finds at its place as a private copy: what it writes there nobody else sees, and pages
// that it has not written may show what ranks write after the fork. Its file stays open for that.
class Inherited {
public:
    Inherited() = default;
    ~Inherited();
    Inherited(const Inherited &) = delete;
    Inherited &operator=(const Inherited &) = delete;

    void keep(Descriptor file, const Mapping &mapping);
    // Of all that the parent kept; before close_in_child.
    static void map_in_child();

private:
    static Inherited *first_;
    Descriptor file_;
    void *data_ = nullptr;
    size_t bytes_ = 0;
    uint32_t generation_ = 0;
    Inherited *next_ = nullptr;
};

// Twice, one behind the other, so that what runs over the end goes on at the beginning.
yoke_status map_mirrored(int fd, size_t offset, size_t bytes, Mapping *out);

}  // namespace yoke::cpu::comm
