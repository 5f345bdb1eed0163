// Elements as unsigned integers of the same order.
//
// Contract: key(a) < key(b) exactly if a sorts before b. -0 and 0 have one key; all NaN have the largest key. ~key
// sorts in the reverse order.
#pragma once

#include "kernels/common/numeric.h"

YOKE_KERNELS_BEGIN

template <int kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
    using type = uint8_t;
};
template <>
struct UnsignedOf<2> {
    using type = uint16_t;
};
template <>
struct UnsignedOf<4> {
    using type = uint32_t;
};
template <>
struct UnsignedOf<8> {
    using type = uint64_t;
};

template <class T>
using sort_key_type = typename UnsignedOf<(int)sizeof(T)>::type;

// Returns the bits of +infinity. Without the sign, the bits of a NaN are larger.
template <class T>
YOKE_HD sort_key_type<T> infinity_bits()
{
    if constexpr (std::is_same_v<T, f16>)
        return 0x7c00u;
    else if constexpr (std::is_same_v<T, bf16>)
        return 0x7f80u;
    else if constexpr (std::is_same_v<T, float>)
        return 0x7f800000u;
    else
        return 0x7ff0000000000000u;
}

template <class T>
YOKE_HD sort_key_type<T> sort_key(T x)
{
    using K = sort_key_type<T>;
    constexpr K kSign = (K)((K)1 << (sizeof(T) * 8 - 1));
    K bits = bit_cast<K>(x);
    if constexpr (is_float<T>) {
        K size = (K)(bits & (K)~kSign);
        K negative = (K)select(size == 0, kSign, (K)~bits);
        K key = select((bits & kSign) != 0, negative, (K)(bits | kSign));
        return select(size > infinity_bits<T>(), (K) ~(K)0, key);
    } else if constexpr (std::is_same_v<T, bool8>) {
        return load<T>(x);  // all that is true is equal
    } else if constexpr (std::is_signed_v<T>) {
        return (K)(bits ^ kSign);
    } else {
        return bits;
    }
}

YOKE_KERNELS_END
