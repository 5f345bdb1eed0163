// Memory shared by several processes: a memfd. It has no path, so killed processes leave no file behind.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/comm/descriptor.h"
#include "kernels/cpu/comm/failure.h"

namespace yoke::cpu::comm {

// Addresses, unmapped with the owner.
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

// Returns the size of a page. Sizes and offsets of shared memory are multiples of this size.
size_t page_bytes();

// Makes memory for other ranks to map. The system commits all bytes before the return, so missing memory gives a
// status here instead of a fault at a later access. The size is sealed, so no rank can shrink the memory under the
// other ranks.
yoke_status make_shared(size_t bytes, Descriptor *out);

// Returns whether this system can share memory. Asked before a peer relies on sharing.
bool can_share();

yoke_status map_shared(int fd, size_t offset, size_t bytes, Mapping *out);

// Mapping that a forked child finds at the same address as a private copy. Other processes do not see the child's
// writes. Pages not written by the child may show later writes of the ranks. For this, the file stays open.
class Inherited {
public:
    Inherited() = default;
    ~Inherited();
    Inherited(const Inherited &) = delete;
    Inherited &operator=(const Inherited &) = delete;

    void keep(Descriptor file, const Mapping &mapping);
    // Maps all kept memory in the child. Must run before close_in_child.
    static void map_in_child();

private:
    static Inherited *first_;
    Descriptor file_;
    void *data_ = nullptr;
    size_t bytes_ = 0;
    uint32_t generation_ = 0;
    Inherited *next_ = nullptr;
};

// Maps the bytes twice, end to end, so an access beyond the end continues at the beginning.
yoke_status map_mirrored(int fd, size_t offset, size_t bytes, Mapping *out);

}  // namespace yoke::cpu::comm
