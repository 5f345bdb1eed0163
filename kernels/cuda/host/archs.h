// archs.h: which devices the code in this module can run on, from the list it was built for.
//
// The list is CMake's CUDA_ARCHITECTURES with commas: "90", "80-real", "100a", "90-virtual". Machine
// code for X.Y runs on X.Z with Z ≥ Y; PTX on any later device, if the driver is at least as new as
// the compiler; code for X.Ya on X.Y alone.
#pragma once

namespace yoke::cuda {

// Returns the architecture (90 for 9.0) of the entry whose code runs on a device of compute capability
// `major`.`minor`. Takes the nearest machine code, else the latest PTX. Returns 0 if no entry runs there.
int arch_of_code(const char *list, int major, int minor, bool driver_takes_ptx);

inline bool archs_serve(const char *list, int major, int minor, bool driver_takes_ptx)
{
    return arch_of_code(list, major, minor, driver_takes_ptx) != 0;
}

}  // namespace yoke::cuda
