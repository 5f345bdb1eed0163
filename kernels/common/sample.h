// Draws by weights: what kernels of every backend do alike, so that each draws the same indices.
//
// Contract
//  * Without replacement, the indices of the largest weights over exponential random numbers are a draw (P. S.
//    Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", 2006). Weights are divided by the row's
//    largest, so no quotient overflows.
//  * With replacement, a number in [0, total) names the index. Weights are added in double, in chunks of kWeightChunk:
//    each chunk in order, then the chunks in order.
//  * random_math.h's rule on contraction holds here too.
#pragma once

#include "kernels/common/philox.h"

YOKE_KERNELS_BEGIN

inline constexpr int64_t kWeightChunk = 256;

// Returns whether a number can be a weight.
template <class C>
YOKE_HD bool is_weight(C x)
{
    return x >= (C)0 && x < (C)kInfinity;
}

template <class T>
YOKE_HD double total_of(const T *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += (double)load<T>(x[i]);
    return sum;
}

// Finds the index in a row of n weights for the part `unit`, in [0, 1), of the row's total. ends[k] is the sum of the
// row's weights to the end of chunk k. The weights have a total above 0.
template <class T>
YOKE_HD int64_t index_at(double unit, const T *x, int64_t n, const double *ends)
{
    const int64_t chunks = (n + kWeightChunk - 1) / kWeightChunk;
    const double place = unit * ends[chunks - 1];
    int64_t low = 0, high = chunks - 1;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        if (ends[middle] > place)
            high = middle;
        else
            low = middle + 1;
    }
    // If rounding has led to the total itself, the last chunk with a weight ends there first.
    while (low > 0 && ends[low - 1] == ends[chunks - 1]) --low;
    const double rest = place - (low > 0 ? ends[low - 1] : 0.0);
    const int64_t first = low * kWeightChunk;
    double sum = 0;
    int64_t found = first;
    for (int64_t i = first; i < n && i < first + kWeightChunk; ++i) {
        const auto weight = (double)load<T>(x[i]);
        if (weight > 0) found = i;  // the last one, if rounding leads to the chunk's end
        sum += weight;
        if (sum > rest && weight > 0) break;
    }
    return found;
}

// Returns the number that picks sample `i` of a draw: element i of a draw in double.
YOKE_HD double unit_at(uint64_t seed, uint64_t offset, int64_t i)
{
    return unit_f64(word64(random_block(seed, offset + (uint64_t)(i / 2)), (int)(i % 2)));
}

// Returns a weight over an exponential number. The key of a weight above 0 stays above 0, however small it is.
template <class C>
YOKE_HD C race_key(C weight, C most, C exponential)
{
    constexpr C kLeast = sizeof(C) == sizeof(float) ? (C)0x1p-126 : (C)0x1p-1022;
    const C key = weight / most / exponential;
    return weight > (C)0 && !(key > kLeast) ? kLeast : key;
}

YOKE_KERNELS_END
