// Reductions as in NCCL's kernels: each hop in the type of the elements. See nccl_fake.h.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {
namespace {

// Arithmetic of an element: the type in memory, and the type for computing a hop.
template <class T>
struct Element {
    using Stored = T;
    using Formed = T;
    static T read(T value) { return value; }
    static T write(T value) { return value; }
};
struct Half {
    using Stored = __half;
    using Formed = float;
    static float read(Stored value) { return __half2float(value); }
    static Stored write(float value) { return __float2half(value); }
};
struct Bfloat {
    using Stored = __nv_bfloat16;
    using Formed = float;
    static float read(Stored value) { return __bfloat162float(value); }
    static Stored write(float value) { return __float2bfloat16(value); }
};
template <class T>
struct Float8 {
    using Stored = T;
    using Formed = float;
    static float read(Stored value) { return static_cast<float>(value); }
    static Stored write(float value) { return T(value); }
};

// Adds. Integers wrap round, as on a GPU.
template <class T>
T add(T a, T b)
{
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    else
        return a + b;
}

template <class T>
T multiply(T a, T b)
{
    if constexpr (std::is_integral_v<T>)
        return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    else
        return a * b;
}

template <class T>
T smaller(T a, T b)
{
    if constexpr (std::is_integral_v<T>)
        return std::min(a, b);
    else
        return std::fmin(a, b);
}

template <class T>
T larger(T a, T b)
{
    if constexpr (std::is_integral_v<T>)
        return std::max(a, b);
    else
        return std::fmax(a, b);
}

template <class E, class Hop>
void fold(const std::vector<const char *> &parts, char *out, size_t count, const Hop &hop)
{
    using Stored = typename E::Stored;
    auto *const result = reinterpret_cast<Stored *>(out);
    if (count) memcpy(out, parts[0], count * sizeof(Stored));
    for (size_t i = 1; i < parts.size(); ++i) {
        const auto *const part = reinterpret_cast<const Stored *>(parts[i]);
        for (size_t at = 0; at < count; ++at)
            result[at] = E::write(hop(E::read(result[at]), E::read(part[at])));
    }
}

template <class E>
void divide(char *out, size_t count, size_t by)
{
    using Formed = typename E::Formed;
    auto *const result = reinterpret_cast<typename E::Stored *>(out);
    for (size_t at = 0; at < count; ++at)
        result[at] = E::write(static_cast<Formed>(E::read(result[at]) / static_cast<Formed>(by)));
}

template <class E>
void reduce_as(const std::vector<const char *> &parts, char *out, size_t count,
               ncclRedOp_t reduction)
{
    using Formed = typename E::Formed;
    switch (reduction) {
        case ncclProd:
            fold<E>(parts, out, count, multiply<Formed>);
            break;
        case ncclMax:
            fold<E>(parts, out, count, larger<Formed>);
            break;
        case ncclMin:
            fold<E>(parts, out, count, smaller<Formed>);
            break;
        default:
            fold<E>(parts, out, count, add<Formed>);
    }
    if (reduction == ncclAvg) divide<E>(out, count, parts.size());
}

}  // namespace

size_t size_of(ncclDataType_t dtype)
{
    constexpr size_t kSizes[ncclNumTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return kSizes[dtype];
}

void reduce(const std::vector<const char *> &parts, char *out, size_t count, ncclDataType_t dtype,
            ncclRedOp_t reduction)
{
    switch (dtype) {
        case ncclInt8:
            return reduce_as<Element<int8_t>>(parts, out, count, reduction);
        case ncclUint8:
            return reduce_as<Element<uint8_t>>(parts, out, count, reduction);
        case ncclInt32:
            return reduce_as<Element<int32_t>>(parts, out, count, reduction);
        case ncclUint32:
            return reduce_as<Element<uint32_t>>(parts, out, count, reduction);
        case ncclInt64:
            return reduce_as<Element<int64_t>>(parts, out, count, reduction);
        case ncclUint64:
            return reduce_as<Element<uint64_t>>(parts, out, count, reduction);
        case ncclFloat16:
            return reduce_as<Half>(parts, out, count, reduction);
        case ncclFloat32:
            return reduce_as<Element<float>>(parts, out, count, reduction);
        case ncclFloat64:
            return reduce_as<Element<double>>(parts, out, count, reduction);
        case ncclBfloat16:
            return reduce_as<Bfloat>(parts, out, count, reduction);
        case ncclFloat8e4m3:
            return reduce_as<Float8<__nv_fp8_e4m3>>(parts, out, count, reduction);
        default:
            return reduce_as<Float8<__nv_fp8_e5m2>>(parts, out, count, reduction);
    }
}

}  // namespace yoke::fake
