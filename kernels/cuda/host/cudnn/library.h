// cuDNN as found: its functions, or the reason that it is missing.
//
// Contract
//  * Yoke looks for cuDNN in the same way as for cuBLASLt, at the first question. Before, no part of cuDNN is mapped;
//    later, no part is unmapped.
//  * cuDNN works from version 9.8 on. It must be made for the module's major version of CUDA, have all parts in one
//    folder, and find NVRTC, with which it compiles kernels. cuDNN would open its parts by bare name and take any
//    copy that the loader finds. So Yoke first opens the parts beside the found library, by path, and refuses a
//    process with other parts.
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

// Returns cuDNN's functions, or null if cuDNN does not work. The first call looks for cuDNN.
const CudnnCalls *cudnn_calls();

}  // namespace yoke::cuda
