// What this module was built with, as text in its file: `yoke doctor` reads it there without loading the module.
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

#define YOKE_TEXT_OF(number) #number
#define YOKE_TEXT(number) YOKE_TEXT_OF(number)

// "used": nothing in the program asks for it.
__attribute__((used)) static const char kBuildMark[] =
    "yoke-cuda-module: cuda " YOKE_TEXT(CUDART_VERSION) " archs " YOKE_CUDA_ARCHS;

}  // namespace yoke::cuda
