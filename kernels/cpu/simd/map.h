// Elementwise maps: result = f(inputs), over any strides and by the whole team.
//
// Contract
//  * map<Out, A…>(f, grain, result, inputs…) is compiled to one loop over dense runs (dense_loop). The rest is
//    written once for all functors and dtypes, in map.cpp: the walk over strides, threads, and operands that are not
//    dense runs. Such operands pass through small buffers in the first-level cache, which make broadcast, strided and
//    narrow elements dense.
//  * A loop goes by whole groups of elements, as many as fill the widest vectors, so there is no remainder loop. The
//    rest of a run is padded in a buffer, so a functor must accept zeros in any argument. A quotient of two zeros
//    raises the processor's floating-point flags, which Yoke never reads.
//  * f takes and gives stored values (Stored, Converted). f16 has no loop: instructions convert f16 to a buffer of
//    floats, and the loop for float runs. If the loop's type is float, an operand of a narrow float (f16, bf16,
//    float8) is converted in the same way.
//  * Each element of an input is read before the same element of the result is written, so input and result may be
//    the same tensor.
#pragma once

#include <utility>

#include "kernels/cpu/simd/fetch.h"

YOKE_SIMD_BEGIN

constexpr int kMapOperands = 5;  // the result and up to four inputs

// Loop over dense runs: its compiled function, and its operands.
struct MapTypes {
    // data: the result, then the inputs. `far` says that all runs together are longer than the caches.
    void (*run)(const void *functor, char *const *data, int64_t groups, bool far);
    uint8_t count;               // number of operands
    uint8_t group_bits;          // a group has 1 << group_bits elements
    uint8_t size[kMapOperands];  // bytes of an element, as the loop takes it
};

// Loop and its functor. The functor must outlive the loop.
struct MapLoop {
    const MapTypes &types;
    const void *functor;
};

// Maps whole operands, by the team. operands[0] is the result, to whose shape the inputs broadcast. Work below
// `grain` stays in the calling thread.
yoke_status map_operands(const MapLoop &loop, const yoke_operand *const *operands, int64_t grain);

// Maps a single run. The dtypes and strides (in bytes) describe the stored operands.
void map_run(const MapLoop &loop, const yoke_dtype *dtypes, char *const *data,
             const int64_t *stride, int64_t n);

// Type in a loop for an operand's type.
template <class T>
using loop_type = std::conditional_t<std::is_same_v<T, f16>, float, T>;

// A functor of kernels/common as one over stored values of a loop's type. Always inlined (YOKE_HD), as every functor of
// a map must be: a loop with a call in it does not become vectors.
template <class L, class F>
struct StoredAs {
    F f;
    template <class... A>
    YOKE_HD L operator()(A... a) const
    {
        return store<L>(f(load<L>(a)...));
    }
};
template <class T, class F>
using Stored = StoredAs<loop_type<T>, F>;

template <class To, class From>
struct Converted {
    YOKE_HD To operator()(From x) const { return convert<To>(x); }
};

// ---- the loop ---------------------------------------------------------------------------------------------------

// Returns the logarithm of a group's size. The narrowest operand's elements of a group fill 64 bytes, the widest
// vector.
template <class... T>
constexpr uint8_t group_bits()
{
    int64_t least = 8;
    ((least = min(least, (int64_t)sizeof(T))), ...);
    return least == 8 ? 3 : least == 4 ? 4 : least == 2 ? 5 : 6;
}

// Runs whole groups: a multiple of every vector's length. The compiler knows this, so no scalar loop follows. A long
// run goes by steps of a few vectors, and each step fetches data of a later step.
template <uint8_t kGroupBits, class F, class Out, class... A>
YOKE_HD void dense_loop(const F f, int64_t groups, bool far, Out *out, const A *...in)
{
    constexpr int64_t kGroup = (int64_t)1 << kGroupBits, kStep = max(1, 64 / kGroup);
    int64_t step = far ? kStep : groups;
    for (; groups > 0; groups -= step) {
        int64_t n = min(step, groups) * kGroup;
        if (far) {
            fetch_to_write((char *)out + kFetchAhead, kStep * kGroup * (int64_t)sizeof(Out));
            (fetch_to_read((const char *)in + kFetchAhead, kStep * kGroup * (int64_t)sizeof(A)),
             ...);
        }
#pragma omp simd
        for (int64_t i = 0; i < n; i++) out[i] = f(in[i]...);
        out += n;
        ((in += n), ...);
    }
}

// Computes f(in…) for each element of whole groups. This is the only code compiled for each functor and its types.
template <class F, class Out, class... A>
void run_dense(const void *functor, char *const *data, int64_t groups, bool far)
{
    [&]<size_t... I>(std::index_sequence<I...>)
    {
        dense_loop<group_bits<Out, A...>()>(*static_cast<const F *>(functor), groups, far,
                                            (Out *)data[0], (const A *)data[I + 1]...);
    }
    (std::make_index_sequence<sizeof...(A)>());
}

template <class F, class... T>
constexpr MapTypes kMapTypes = {
    run_dense<F, T...>, sizeof...(T), group_bits<T...>(), {sizeof(T)...}};

// Returns the loop of a functor, for a result and inputs of the types T….
template <class... T, class F>
inline MapLoop make_map(const F &f)
{
    return {kMapTypes<F, loop_type<T>...>, &f};
}

// Computes result = f(inputs…), where T… are the types of the result and of the inputs.
template <class... T, class F, class... In>
yoke_status map(const F &f, int64_t grain, const yoke_operand &out, const In &...in)
{
    const yoke_operand *const operands[] = {&out, &in...};
    return map_operands(make_map<T...>(f), operands, grain);
}

YOKE_SIMD_END
