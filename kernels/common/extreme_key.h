// Floats as unsigned integers of the same order, and back, for hardware or libraries that reduce integers only.
//
// Contract: -0 is below 0, so each number has a key of its own. All NaN have the key `nan`: the largest integer or 0.
// No number has this key. The way back gives one quiet NaN.
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
