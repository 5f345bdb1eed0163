// cuDNN as it was found: its functions, or why there is none.
//
// Contract
//  * It is looked for as cuBLASLt is, at the first question; before that no part of it is mapped, and later none is
//    unmapped.
//  * It serves from version 9.8 on, made for the module's major version of CUDA, with all parts from one folder and
//    with NVRTC, which it compiles kernels with. cuDNN would open its parts by bare name, and take whichever copy the
//    loader finds: so those beside the found one are opened first, by path, and a process that has others is refused.
#pragma once

#include <cudnn_backend.h>

#include "kernels/cuda/host/library.h"

namespace yoke::cuda {

#define YOKE_CUDNN_CALLS(CALL)          \
    CALL(cudnnGetVersion)               \
    CALL(cudnnGetCudartVersion)         \
    CALL(cudnnGetErrorString)           \
    CALL(cudnnGetLastErrorString)       \
    CALL(cudnnCreate)                   \
    CALL(cudnnDestroy)                  \
    CALL(cudnnSetStream)                \
    CALL(cudnnBackendCreateDescriptor)  \
    CALL(cudnnBackendDestroyDescriptor) \
    CALL(cudnnBackendSetAttribute)      \
    CALL(cudnnBackendGetAttribute)      \
    CALL(cudnnBackendFinalize)          \
    CALL(cudnnBackendExecute)

struct CudnnCalls {
    YOKE_CUDNN_CALLS(YOKE_LIBRARY_MEMBER)
};

// Null where cuDNN cannot serve; looks for it at the first call.
const CudnnCalls *cudnn_calls();

}  // namespace yoke::cuda
