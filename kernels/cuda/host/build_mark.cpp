// Build properties of this module, as text in its file: `yoke doctor` reads the text without loading the module.
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

#define YOKE_TEXT_OF(number) #number
#define YOKE_TEXT(number) YOKE_TEXT_OF(number)

// "used": no code of the program refers to the text.
__attribute__((used)) static const char kBuildMark[] =
    "yoke-cuda-module: cuda " YOKE_TEXT(CUDART_VERSION) " archs " YOKE_CUDA_ARCHS;

}  // namespace yoke::cuda
