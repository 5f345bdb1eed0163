// NCCL's interface as used by this module, under NCCL's own names, so the module builds without nccl.h.
//
// Contract
//  * All declarations are from NCCL 2.19, the oldest supported version, except a few later calls that are looked up
//    by name. tests/emu/tests/collective/abi_test.cpp compares each declaration with the true nccl.h, if present.
//  * ncclConfig_t has the size of 2.19. It contains its size and version, and a newer NCCL fills in the rest.
#pragma once

#include <cuda_runtime_api.h>

#include <climits>
#include <cstddef>

namespace yoke::cuda::nccl {

using ncclComm_t = struct ncclComm *;
using ncclWindow_t = struct ncclWindow *;

struct ncclUniqueId {
    char internal[128];
};

enum ncclResult_t {
    ncclSuccess = 0,
    ncclUnhandledCudaError = 1,
    ncclSystemError = 2,
    ncclInternalError = 3,
    ncclInvalidArgument = 4,
    ncclInvalidUsage = 5,
    ncclRemoteError = 6,
    ncclInProgress = 7,
};

enum ncclRedOp_t { ncclSum = 0, ncclProd = 1, ncclMax = 2, ncclMin = 3, ncclAvg = 4 };

enum ncclDataType_t {
    ncclInt8 = 0,
    ncclUint8 = 1,
    ncclInt32 = 2,
    ncclUint32 = 3,
    ncclInt64 = 4,
    ncclUint64 = 5,
    ncclFloat16 = 6,
    ncclFloat32 = 7,
    ncclFloat64 = 8,
    ncclBfloat16 = 9,
};

constexpr int kFloor = 21900;  // as ncclGetVersion tells it: 2.19.0
constexpr int kUndefined = INT_MIN;
constexpr int kSymmetric = 1;  // NCCL_WIN_COLL_SYMMETRIC

struct ncclConfig_t {
    size_t size = sizeof(ncclConfig_t);
    unsigned magic = 0xcafebeef;
    unsigned version = kFloor;
    int blocking = kUndefined;
    int cgaClusterSize = kUndefined;
    int minCTAs = kUndefined;
    int maxCTAs = kUndefined;
    const char *netName = nullptr;
    int splitShare = kUndefined;
};

// CALL(result, name, parameters): what every NCCL since 2.19 has.
#define YOKE_NCCL_CALLS(CALL)                                                                     \
    CALL(ncclResult_t, ncclGetVersion, (int *))                                                   \
    CALL(ncclResult_t, ncclGetUniqueId, (ncclUniqueId *))                                         \
    CALL(ncclResult_t, ncclCommInitRankConfig,                                                    \
         (ncclComm_t *, int, ncclUniqueId, int, ncclConfig_t *))                                  \
    CALL(ncclResult_t, ncclCommFinalize, (ncclComm_t))                                            \
    CALL(ncclResult_t, ncclCommDestroy, (ncclComm_t))                                             \
    CALL(ncclResult_t, ncclCommAbort, (ncclComm_t))                                               \
    CALL(ncclResult_t, ncclCommGetAsyncError, (ncclComm_t, ncclResult_t *))                       \
    CALL(const char *, ncclGetErrorString, (ncclResult_t))                                        \
    CALL(const char *, ncclGetLastError, (ncclComm_t))                                            \
    CALL(ncclResult_t, ncclGroupStart, ())                                                        \
    CALL(ncclResult_t, ncclGroupEnd, ())                                                          \
    CALL(ncclResult_t, ncclAllReduce,                                                             \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))   \
    CALL(ncclResult_t, ncclReduce,                                                                \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, int, ncclComm_t,             \
          cudaStream_t))                                                                          \
    CALL(ncclResult_t, ncclBroadcast,                                                             \
         (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))           \
    CALL(ncclResult_t, ncclAllGather,                                                             \
         (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t))                \
    CALL(ncclResult_t, ncclReduceScatter,                                                         \
         (const void *, void *, size_t, ncclDataType_t, ncclRedOp_t, ncclComm_t, cudaStream_t))   \
    CALL(ncclResult_t, ncclSend,                                                                  \
         (const void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))                   \
    CALL(ncclResult_t, ncclRecv, (void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t)) \
    CALL(ncclResult_t, ncclMemAlloc, (void **, size_t))                                           \
    CALL(ncclResult_t, ncclMemFree, (void *))                                                     \
    CALL(ncclResult_t, ncclCommRegister, (ncclComm_t, void *, size_t, void **))                   \
    CALL(ncclResult_t, ncclCommDeregister, (ncclComm_t, void *))

// Calls of later versions: windows since 2.27, the three collectives since 2.28.
#define YOKE_NCCL_NEWER_CALLS(CALL)                                                               \
    CALL(ncclResult_t, ncclCommWindowRegister, (ncclComm_t, void *, size_t, ncclWindow_t *, int)) \
    CALL(ncclResult_t, ncclCommWindowDeregister, (ncclComm_t, ncclWindow_t))                      \
    CALL(ncclResult_t, ncclAlltoAll,                                                              \
         (const void *, void *, size_t, ncclDataType_t, ncclComm_t, cudaStream_t))                \
    CALL(ncclResult_t, ncclGather,                                                                \
         (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))           \
    CALL(ncclResult_t, ncclScatter,                                                               \
         (const void *, void *, size_t, ncclDataType_t, int, ncclComm_t, cudaStream_t))

#define YOKE_NCCL_MEMBER(result, name, parameters) result(*name) parameters;

struct RequiredCalls {
    YOKE_NCCL_CALLS(YOKE_NCCL_MEMBER)
};

// Null if the call is missing in this NCCL.
struct NewerCalls {
    YOKE_NCCL_NEWER_CALLS(YOKE_NCCL_MEMBER)
};

struct Calls : RequiredCalls, NewerCalls {};

}  // namespace yoke::cuda::nccl
