// The module's own header of NCCL against NCCL's header, if there is one: sizes, places, numbers and signatures.
#include <gtest/gtest.h>

#include <cstddef>
#include <type_traits>

#include "kernels/cuda/host/nccl/abi.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace yoke::test {

namespace ours = cuda::nccl;

namespace {

// True if both types are passed alike: numbers and enumerations of equal size, pointers, and structs of equal size.
template <class A, class B>
constexpr bool kAlike =
    sizeof(A) == sizeof(B) && std::is_pointer_v<A> == std::is_pointer_v<B> &&std::is_class_v<A> ==
                                  std::is_class_v<B> &&std::is_floating_point_v<A> ==
                                  std::is_floating_point_v<B>;

template <class A, class B>
struct Signature : std::false_type {
};
template <class R, class... A, class S, class... B>
requires(sizeof...(A) == sizeof...(B)) struct Signature<R (*)(A...), S (*)(B...)>
    : std::bool_constant<kAlike<R, S> && (kAlike<A, B> && ...)> {
};

#define CHECK_SIGNATURE(result, name, parameters) \
    static_assert(Signature<decltype(ours::Calls::name), decltype(&::name)>::value, #name);
YOKE_NCCL_CALLS(CHECK_SIGNATURE)
#if NCCL_VERSION_CODE >= 22800
YOKE_NCCL_NEWER_CALLS(CHECK_SIGNATURE)
#endif

#define CHECK_NUMBER(name) static_assert((int)ours::name == (int)::name, #name);
CHECK_NUMBER(ncclSuccess)
CHECK_NUMBER(ncclUnhandledCudaError)
CHECK_NUMBER(ncclSystemError)
CHECK_NUMBER(ncclInternalError)
CHECK_NUMBER(ncclInvalidArgument)
CHECK_NUMBER(ncclInvalidUsage)
CHECK_NUMBER(ncclRemoteError)
CHECK_NUMBER(ncclInProgress)
CHECK_NUMBER(ncclSum)
CHECK_NUMBER(ncclProd)
CHECK_NUMBER(ncclMax)
CHECK_NUMBER(ncclMin)
CHECK_NUMBER(ncclAvg)
CHECK_NUMBER(ncclInt8)
CHECK_NUMBER(ncclUint8)
CHECK_NUMBER(ncclInt32)
CHECK_NUMBER(ncclUint32)
CHECK_NUMBER(ncclInt64)
CHECK_NUMBER(ncclUint64)
CHECK_NUMBER(ncclFloat16)
CHECK_NUMBER(ncclFloat32)
CHECK_NUMBER(ncclFloat64)
CHECK_NUMBER(ncclBfloat16)

#define CHECK_PLACE(field)                                                                  \
    static_assert(offsetof(ours::ncclConfig_t, field) == offsetof(::ncclConfig_t, field) && \
                      sizeof(ours::ncclConfig_t::field) == sizeof(::ncclConfig_t::field),   \
                  #field);
CHECK_PLACE(size)
CHECK_PLACE(magic)
CHECK_PLACE(version)
CHECK_PLACE(blocking)
CHECK_PLACE(cgaClusterSize)
CHECK_PLACE(minCTAs)
CHECK_PLACE(maxCTAs)
CHECK_PLACE(netName)
CHECK_PLACE(splitShare)
static_assert(sizeof(ours::ncclConfig_t) <= sizeof(::ncclConfig_t));
static_assert(sizeof(ours::ncclUniqueId) == sizeof(::ncclUniqueId));
static_assert(ours::kUndefined == NCCL_CONFIG_UNDEF_INT);
static_assert(ours::kFloor == NCCL_VERSION(2, 19, 0));
#if NCCL_VERSION_CODE >= 22700
static_assert(ours::kSymmetric == NCCL_WIN_COLL_SYMMETRIC);
#endif

}  // namespace

TEST(NcclAbi, TheConfigHasTheTrueMagicNumber)
{
    const ::ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
    const ours::ncclConfig_t mine;
    EXPECT_EQ(mine.magic, theirs.magic);
    EXPECT_EQ(mine.size, sizeof mine);
}

}  // namespace yoke::test
#endif
