// Launches recorded instead of run, for benchmarks/roofline, which follows them through a kernel's machine code.
//
// With YOKE_EMU_RECORD=<file> each launch becomes a line of JSON in the file, with the parameters in CUDA's layout.
// No kernel runs, so results are the former contents of their memory.
#pragma once

#include <vector_types.h>

#include <cstddef>
#include <cstring>
#include <vector>

struct yoke_launch;

namespace yoke::emu {

// Tells whether launches are written down.
bool records();

// Returns the parameters of a kernel in the order and with the alignment of its signature.
template <class... P>
std::vector<unsigned char> parameters(const P &...values)
{
    std::vector<unsigned char> bytes;
    const auto append = [&bytes](const auto &value) {
        const size_t alignment = alignof(decltype(value));
        bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
        const size_t at = bytes.size();
        bytes.resize(at + sizeof value);
        memcpy(bytes.data() + at, &value, sizeof value);
    };
    (append(values), ...);
    return bytes;
}

void record(const yoke_launch *launch, const char *name, const void *kernel, dim3 grid, dim3 block,
            size_t shared_bytes, const std::vector<unsigned char> &parameters);

}  // namespace yoke::emu
