// archs.h: which devices the code in this module can run on, from the list it was built for.
//
// The list is CMake's CUDA_ARCHITECTURES with commas: "90", "80-real", "100a", "90-virtual". Machine
// code for X.Y runs on X.Z with Z ≥ Y; PTX on any later device, if the driver is at least as new as
// the compiler; code for X.Ya on X.Y alone.
#pragma once

namespace yoke::cuda {

// True if one entry of the list serves compute capability `major`.`minor`.
bool archs_serve(const char *list, int major, int minor, bool driver_takes_ptx);

}  // namespace yoke::cuda
