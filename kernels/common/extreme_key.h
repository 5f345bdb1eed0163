// Floats as unsigned integers that sort as they do, and back, for who reduces integers alone.
//
// Contract: -0 is below 0, so that each number has a key of its own. All NaN have the key `nan`, which no number has:
// the largest integer or 0. They come back as one quiet NaN.
#pragma once

#include "kernels/common/macros.h"

YOKE_KERNELS_BEGIN

// A float format of as many bits as K has, by its bits.
template <class K>
struct KeyFormat {
    K most;   // the largest magnitude that is no NaN
    K quiet;  // a NaN
    K nan;    // the key of NaN: ~0 or 0
};

template <class K>
YOKE_HD K extreme_key(K bits, const KeyFormat<K> &format)
{
    constexpr K kSign = (K)((K)1 << (sizeof(K) * 8 - 1));
    const K magnitude = (K)(bits & (K)~kSign);
    const K key = (bits & kSign) ? (K)~bits : (K)(bits | kSign);
    return magnitude > format.most ? format.nan : key;
}

template <class K>
YOKE_HD K bits_of_extreme_key(K key, const KeyFormat<K> &format)
{
    constexpr K kSign = (K)((K)1 << (sizeof(K) * 8 - 1));
    const K bits = (key & kSign) ? (K)(key ^ kSign) : (K)~key;
    return key == format.nan ? format.quiet : bits;
}

YOKE_KERNELS_END
