// Sums of bfloat16 in float32 without a move between lanes. Each 32 bits of a vector hold two elements. The even
// element is shifted to the top; the odd element is at the top already.
#pragma once

#include "kernels/cpu/simd/load_vector.h"
#include "kernels/cpu/simd/tile.h"

YOKE_SIMD_BEGIN

using Halves = VectorOf<uint16_t, kVectorBytes>;

struct Bf16Pairs {
    using Words = VectorOf<uint32_t, kVectorBytes>;
    static constexpr uint32_t kTop = 0xffff0000;
    static constexpr int64_t kCount = kVectorBytes / 2;  // elements

    Vector<float> even = {}, odd = {};

    void add(Halves elements)
    {
        const Words pairs = (Words)elements;
        even += (Vector<float>)(pairs << 16);
        odd += (Vector<float>)(pairs & kTop);
    }
    Halves rounded() const { return (Halves)(round(even) >> 16 | (round(odd) & kTop)); }

private:
    // Rounds each lane as f32_to_bf16 does. The result is in the upper half of the lane.
    static Words round(Vector<float> v)
    {
        const Words bits = (Words)v;
        return v == v ? bits + 0x7fffu + (bits >> 16 & 1u) : bits | 0x400000u;
    }
};

YOKE_SIMD_END
