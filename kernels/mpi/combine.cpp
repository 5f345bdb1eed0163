// The arithmetic of collectives, compiled once for each instruction set under the name YOKE_COMBINE. Nothing here
// instantiates a template of the C++ library: see kernels/cpu/simd/simd.h.
#include "kernels/common/combine.h"

namespace yoke::mpi {

extern const kernels::CombineFn YOKE_COMBINE;
const kernels::CombineFn YOKE_COMBINE = kernels::combine_elements;

}  // namespace yoke::mpi
