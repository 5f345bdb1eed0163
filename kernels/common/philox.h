// Random numbers: Philox 4x32-10 and the transforms from its words to the distributions Yoke
// offers.
//
// Contract
//  * There is no state to carry from element to element. Element i of a draw takes element i % L of
//    the block with counter offset + i / L, whatever the number of threads, the width of a vector
//    or the shape of a CUDA block. L is 4; for what needs 64 bits an element (f64, integers) it is
//    2. The draw has used blocks_used<L>(n) counters; the next one's offset starts behind them.
//  * The key is the seed; the counter's upper 64 bits are 0.
//  * The same bits everywhere: integer arithmetic and random_math.h, whose rule on contraction
//    holds here too.
//
// Generator: J. K. Salmon, M. A. Moraes, R. O. Dror, D. E. Shaw, "Parallel random numbers: as easy
// as 1, 2, 3", SC11. Normals: G. E. P. Box, M. E. Muller, "A note on the generation of random
// normal deviates", 1958.
#pragma once

#include "kernels/common/numeric.h"
#include "kernels/common/random_math.h"

// Stands behind the arguments of a lambda that must be inlined as a YOKE_HD function is.
#if defined(__CUDACC__)
#define YOKE_INLINED
#else
#define YOKE_INLINED __attribute__((always_inline))
#endif

YOKE_KERNELS_BEGIN

// Calls f(0) to f(kCount - 1). Compilers see calls and no loop, so a loop around the calls can become vectors.
template <int kCount, class F>
YOKE_HD void in_turn(const F &f)
{
    if constexpr (kCount > 0) {
        in_turn<kCount - 1>(f);
        f(kCount - 1);
    }
}

struct Words {
    uint32_t w[4];
};

// Runs this many rounds of Philox. Without a loop over rounds or words, a loop over blocks can become vectors.
template <int kRounds>
YOKE_HD Words philox_rounds(const Words &c, uint32_t key0, uint32_t key1)
{
    if constexpr (kRounds == 0) {
        return c;
    } else {
        uint64_t a = (uint64_t)0xd2511f53u * c.w[0];
        uint64_t b = (uint64_t)0xcd9e8d57u * c.w[2];
        const Words next = {{(uint32_t)(b >> 32) ^ c.w[1] ^ key0, (uint32_t)b,
                             (uint32_t)(a >> 32) ^ c.w[3] ^ key1, (uint32_t)a}};
        // The steps are the golden ratio, and the square root of 3, less 1.
        return philox_rounds<kRounds - 1>(next, key0 + 0x9e3779b9u, key1 + 0xbb67ae85u);
    }
}

YOKE_HD Words philox4x32(const Words &counter, uint32_t key0, uint32_t key1)
{
    return philox_rounds<10>(counter, key0, key1);
}

// Returns the block of four words at a counter of a seed's sequence.
YOKE_HD Words random_block(uint64_t seed, uint64_t counter)
{
    return philox4x32({{(uint32_t)counter, (uint32_t)(counter >> 32), 0, 0}}, (uint32_t)seed,
                      (uint32_t)(seed >> 32));
}

// Returns the number of counters that a draw of n elements takes.
template <int kDraws>
YOKE_HD uint64_t blocks_used(int64_t n)
{
    return ((uint64_t)n + kDraws - 1) / kDraws;
}

YOKE_HD uint64_t word64(const Words &block, int k)
{
    return (uint64_t)block.w[2 * k + 1] << 32 | block.w[2 * k];
}

// ---- transforms ---------------------------------------------------------------------------------

// Returns a number in [0, 1), an exact multiple of 2^-24. 1 is never reached, not even by rounding.
YOKE_HD float unit_f32(uint32_t word)
{
    return (float)(int32_t)(word >> 8) * 0x1p-24f;
}

// Converts an integer up to 2^53, exactly, in two parts: AVX2 has no conversion of 64-bit integers.
YOKE_HD double exact_f64(uint64_t x)
{
    double high = bit_cast<double>((x >> 32) | 0x4330000000000000u) - 0x1p52;
    double low = bit_cast<double>((x & 0xffffffffu) | 0x4330000000000000u) - 0x1p52;
    return high * 0x1p32 + low;
}

// Returns a number in [0, 1), an exact multiple of 2^-53.
YOKE_HD double unit_f64(uint64_t word)
{
    return exact_f64(word >> 11) * 0x1p-53;
}

// Returns a number in (0, 1] from all 32 bits, for logarithms. Both halves are exact; their sum rounds once. The
// smallest value, 2^-32, bounds a float normal at 6.66.
YOKE_HD float positive_unit_f32(uint32_t word)
{
    return ((float)(int32_t)(word >> 16) * 65536.0f + (float)(int32_t)((word & 0xffffu) + 1u)) *
           0x1p-32f;
}

YOKE_HD double positive_unit_f64(uint64_t word)
{
    return exact_f64((word >> 11) + 1u) * 0x1p-53;
}

// Two independent normals from two words.
template <class T>
struct NormalPair {
    T first;
    T second;
};

YOKE_HD NormalPair<float> box_muller(uint32_t a, uint32_t b)
{
    float radius = ::sqrtf(-2.0f * random_log(positive_unit_f32(a)));
    SinCos<float> angle = sincos_turns(unit_f32(b));
    return {radius * angle.cos, radius * angle.sin};
}

YOKE_HD NormalPair<double> box_muller(uint64_t a, uint64_t b)
{
    double radius = ::sqrt(-2.0 * random_log(positive_unit_f64(a)));
    SinCos<double> angle = sincos_turns(unit_f64(b));
    return {radius * angle.cos, radius * angle.sin};
}

// Returns the upper 64 bits of a 128-bit product.
YOKE_HD uint64_t multiply_high(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t middle = a_high * b_low + ((a_low * b_low) >> 32);
    uint64_t cross = a_low * b_high + (uint32_t)middle;
    return a_high * b_high + (middle >> 32) + (cross >> 32);
}

// ---- distributions: what a block becomes --------------------------------------------------------

// [0, 1) in as many bits as T holds exactly, so that a stored value never rounds up to 1.
template <class T>
struct Uniform {
    using Value = compute_type<T>;
    static constexpr int kDraws = 4;
    static constexpr uint32_t kKept = std::is_same_v<T, f16>    ? ~0u << 21
                                      : std::is_same_v<T, bf16> ? ~0u << 24
                                                                : ~0u << 8;

    YOKE_HD void operator()(const Words &block, float *out) const
    {
        in_turn<4>([&](int k) YOKE_INLINED { out[k] = unit_f32(block.w[k] & kKept); });
    }
};

template <>
struct Uniform<double> {
    using Value = double;
    static constexpr int kDraws = 2;
    static constexpr uint32_t kKept = ~0u;

    YOKE_HD void operator()(const Words &block, double *out) const
    {
        in_turn<2>([&](int k) YOKE_INLINED { out[k] = unit_f64(word64(block, k)); });
    }
};

// Mean 0, variance 1. Elements 0 and 1, 2 and 3 are the pairs of one transform.
template <class T>
struct StandardNormal {
    using Value = compute_type<T>;
    static constexpr int kDraws = 4;

    YOKE_HD void operator()(const Words &block, float *out) const
    {
        NormalPair<float> low = box_muller(block.w[0], block.w[1]);
        NormalPair<float> high = box_muller(block.w[2], block.w[3]);
        out[0] = low.first, out[1] = low.second, out[2] = high.first, out[3] = high.second;
    }
};

template <>
struct StandardNormal<double> {
    using Value = double;
    static constexpr int kDraws = 2;

    YOKE_HD void operator()(const Words &block, double *out) const
    {
        NormalPair<double> pair = box_muller(word64(block, 0), word64(block, 1));
        out[0] = pair.first, out[1] = pair.second;
    }
};

// [low, high). From 0 to 1 these are the values of Uniform, else numbers of all bits, scaled. If such a number rounds
// up to high, it becomes low.
template <class T>
struct UniformBetween {
    using Value = compute_type<T>;
    static constexpr int kDraws = Uniform<T>::kDraws;
    Value low, high, span;
    uint32_t kept;  // bits of a word that count, where T is no double

    UniformBetween(double from, double to)
        : low((Value)from),
          high((Value)to),
          span((Value)(to - from)),
          kept(from == 0 && to == 1 ? Uniform<T>::kKept : Uniform<Value>::kKept)
    {
    }

    YOKE_HD void operator()(const Words &block, Value *out) const
    {
        in_turn<kDraws>([&](int k) YOKE_INLINED {
            Value unit;
            if constexpr (kDraws == 4)
                unit = unit_f32(block.w[k] & kept);
            else
                unit = unit_f64(word64(block, k));
            Value scaled = low + unit * span;
            out[k] = load<T>(store<T>(scaled)) < high ? scaled : low;
        });
    }
};

// Normals of a mean and a standard deviation.
template <class T>
struct ScaledNormal {
    using Value = compute_type<T>;
    static constexpr int kDraws = StandardNormal<T>::kDraws;
    Value mean, deviation;

    YOKE_HD void operator()(const Words &block, Value *out) const
    {
        StandardNormal<T>()(block, out);
        in_turn<kDraws>([&](int k) YOKE_INLINED { out[k] = out[k] * deviation + mean; });
    }
};

// -log of a number in (0, 1], but above 0.
YOKE_HD float exponential_f32(uint32_t word)
{
    float e = -random_log(positive_unit_f32(word));
    return select(e > 0.0f, e, 0x1p-26f);
}

YOKE_HD double exponential_f64(uint64_t word)
{
    double e = -random_log(positive_unit_f64(word));
    return select(e > 0.0, e, 0x1p-55);
}

// Exponential numbers of a rate.
template <class T>
struct Exponential {
    using Value = compute_type<T>;
    static constexpr int kDraws = Uniform<T>::kDraws;
    Value rate;

    YOKE_HD void operator()(const Words &block, Value *out) const
    {
        in_turn<kDraws>([&](int k) YOKE_INLINED {
            if constexpr (kDraws == 4)
                out[k] = exponential_f32(block.w[k]) / rate;
            else
                out[k] = exponential_f64(word64(block, k)) / rate;
        });
    }
};

// Integers in [low, high), high > low: the upper half of word * (high - low). With r = high - low,
// the probability of a value differs from 1/r by less than 2^-64, hence relatively by less than r /
// 2^64.
struct UniformInteger {
    using Value = int64_t;
    static constexpr int kDraws = 2;
    int64_t low;
    int64_t high;

    YOKE_HD void operator()(const Words &block, int64_t *out) const
    {
        uint64_t range = (uint64_t)high - (uint64_t)low;
        in_turn<2>([&](int k) YOKE_INLINED {
            out[k] = (int64_t)((uint64_t)low + multiply_high(word64(block, k), range));
        });
    }
};

// Dropout's mask: false with probability p, to within 2^-32; never for p = 0, always for p = 1.
struct Keep {
    using Value = bool;
    static constexpr int kDraws = 4;
    uint32_t threshold;  // in units of 2^-31

    YOKE_HD static Keep dropping(double p) { return {(uint32_t)(p * 0x1p31 + 0.5)}; }

    YOKE_HD void operator()(const Words &block, bool *out) const
    {
        in_turn<4>([&](int k) YOKE_INLINED { out[k] = (block.w[k] >> 1) >= threshold; });
    }
};

// ---- drawing: host code -------------------------------------------------------------------------

inline constexpr int kBatch = 64;  // blocks drawn at once: whole vectors of every instruction set

// Draws the blocks from `counter` on. Stands alone: inlined, each dtype would have a copy of the vectors' code.
template <class Distribution>
__attribute__((noinline)) static void random_batch(const Distribution &given, uint64_t seed,
                                                   uint64_t counter,
                                                   typename Distribution::Value *out)
{
    constexpr int kDraws = Distribution::kDraws;
    const Distribution draw = given;  // which no element of `out` can overlap
    for (int block = 0; block < kBatch; ++block) {
        typename Distribution::Value values[kDraws];
        draw(random_block(seed, counter + (uint64_t)block), values);
        in_turn<kDraws>([&](int k) YOKE_INLINED { out[block * kDraws + k] = values[k]; });
    }
}

// Fills elements [begin, end) of a draw. If threads share a draw, any cut gives the same numbers. `out` points to the
// draw's element 0.
template <class T, class Distribution>
inline void random_fill(const Distribution &draw, uint64_t seed, uint64_t offset, int64_t begin,
                        int64_t end, T *out)
{
    using Value = typename Distribution::Value;
    constexpr int64_t kDraws = Distribution::kDraws, kSize = kBatch * kDraws;
    Value values[kSize];
    for (int64_t first = begin / kDraws * kDraws; first < end; first += kSize) {
        const uint64_t counter = offset + (uint64_t)(first / kDraws);
        const int64_t from = first < begin ? begin : first,
                      to = end < first + kSize ? end : first + kSize;
        if constexpr (std::is_same_v<T, Value>) {
            if (to - from == kSize) {
                random_batch(draw, seed, counter, out + first);
                continue;
            }
        }
        random_batch(draw, seed, counter, values);
        for (int64_t i = from; i < to; ++i) out[i] = convert<T>(values[i - first]);
    }
}

YOKE_KERNELS_END
