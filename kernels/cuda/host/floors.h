// floors.h: the oldest toolkits for this module, and the oldest drivers.
//
// A driver works with every toolkit of its major version. But kernels here have up to 32,764 bytes of arguments
// (tensor_table.cuh). Toolkits and drivers support this from CUDA 12.1 on; before, the limit was 4,096.
#pragma once

#include <cuda.h>

namespace yoke::cuda {

constexpr int kFirstToolkit = 12010;
static_assert(
    CUDA_VERSION >= kFirstToolkit,
    "Yoke's CUDA module needs CUDA 12.1 or newer: its kernels take more than 4 KiB of arguments");

struct Floor {
    int version;          // least CUDA version of a driver, as in cuDriverGetVersion
    const char *release;  // the first that does
};

// Returns the oldest driver for a module that was built with this version of CUDA.
constexpr Floor floor_of(int cuda)
{
    switch (cuda / 1000) {
        case 12:
            return {kFirstToolkit, "530"};
        case 13:
            return {13000, "580"};
        default:
            return {cuda / 1000 * 1000, "of that CUDA version"};
    }
}

}  // namespace yoke::cuda
