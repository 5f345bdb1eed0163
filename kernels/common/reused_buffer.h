// Memory of a communicator, reused by its calls in turn.
//
// Contract: compiled once a module, in the baseline instruction set. One thread at a time.
#pragma once

#include <cstddef>
#include <memory>

namespace yoke::kernels {

// Memory for the length of a call, kept for the next call.
class ReusedBuffer {
public:
    // Returns memory of at least this many bytes, with undefined content. Memory returned earlier is no longer valid.
    // Raises std::bad_alloc.
    char *reserve(size_t bytes);

private:
    std::unique_ptr<char[]> data_;
    size_t bytes_ = 0;
};

}  // namespace yoke::kernels
