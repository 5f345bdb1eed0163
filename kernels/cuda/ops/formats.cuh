// Elements of a dtype known at run time, in the kernel's computing type.
//
// Contract
//  * A kernel is compiled once for each computing type, not for each dtype. A format, below, is the set of dtypes
//    that such a kernel reads or writes: with(dtype, f) calls f.operator()<T>() for the stored type. All threads of a
//    launch take the same branch. This costs a few instructions for each pack, while a kernel waits for memory
//    anyway.
//  * Integers are computed in int64; modulo 2^bits the result equals the result in their own type. A bool is "not 0",
//    and is computed as 0 or 1, whatever byte stands for true.
//  * Stored and put_packs move kAtOnce elements of a run, in two halves. If a thread's elements have 16 bytes, its
//    halves lie side by side. Otherwise the halves are `apart`, so the halves of a warp's threads are neighbours.
#pragma once

#include "kernels/cuda/ops/halves.cuh"

YOKE_CUDA_BEGIN

#define YOKE_FORMAT_CASE(value, type)  \
    case value:                        \
        f.template operator()<type>(); \
        return;
#define YOKE_FORMAT_LABEL(value, type) case value:
#define YOKE_FORMAT_SIZE(value, type) | (int)sizeof(type)
// Defines a format. `rest` is the stored type of dtypes without a case. kSizes has a bit for each size of a stored
// type.
#define YOKE_FORMAT(name, C, CASES, rest)                                        \
    struct name {                                                                \
        using Value = C;                                                         \
        static constexpr int kSizes = (int)sizeof(rest) CASES(YOKE_FORMAT_SIZE); \
        template <class F>                                                       \
        __device__ static void with([[maybe_unused]] int dtype, const F &f)      \
        {                                                                        \
            switch (dtype) {                                                     \
                CASES(YOKE_FORMAT_CASE)                                          \
                default:                                                         \
                    f.template operator()<rest>();                               \
            }                                                                    \
        }                                                                        \
    };

#define YOKE_NO_CASES(CASE)
#define YOKE_BF16_CASE(CASE) CASE(YOKE_BF16, bf16)
#define YOKE_HALF_CASES(CASE) YOKE_BF16_CASE(CASE) CASE(YOKE_F16, f16)
#define YOKE_ALL_INTEGER_CASES(CASE) YOKE_INTEGER_TYPES(CASE) YOKE_STORED_INTEGER_TYPES(CASE)
#define YOKE_WORD_CASES(CASE) \
    CASE(YOKE_I64, uint64_t) CASE(YOKE_I32, uint32_t) CASE(YOKE_F16, uint16_t)

YOKE_FORMAT(Floats, float, YOKE_HALF_CASES, float)
YOKE_FORMAT(Halves, float, YOKE_BF16_CASE, f16)
YOKE_FORMAT(Singles, float, YOKE_NO_CASES, float)
YOKE_FORMAT(StoredFloats, float, YOKE_NARROW_TYPES, float)  // with what is only cast
YOKE_FORMAT(Doubles, double, YOKE_NO_CASES, double)
YOKE_FORMAT(Integers, int64_t, YOKE_INTEGER_TYPES, bool8)
YOKE_FORMAT(StoredIntegers, int64_t, YOKE_ALL_INTEGER_CASES, bool8)
YOKE_FORMAT(Bools, bool, YOKE_NO_CASES, bool8)
YOKE_FORMAT(Words, uint64_t, YOKE_WORD_CASES, uint8_t)  // only moved: as_format
YOKE_FORMAT(Anything, void, YOKE_STORED_TYPES, float)   // for the result of a cast

// Calls f.operator()<Format>() with the format of a computed dtype: floats only, or (for_any_format) all dtypes.
// Fails for other dtypes.
template <class F>
inline yoke_status for_float_format(const yoke_launch *launch, const char *operand,
                                    yoke_dtype dtype, const F &f)
{
    switch (dtype) {
        case YOKE_F32:
        case YOKE_BF16:
        case YOKE_F16:
            return f.template operator()<Floats>();
        case YOKE_F64:
            return f.template operator()<Doubles>();
        default:
            return bad_dtype(launch, operand, dtype);
    }
}

template <class F>
inline yoke_status for_any_format(const yoke_launch *launch, const char *operand, yoke_dtype dtype,
                                  const F &f)
{
    switch (dtype) {
        YOKE_INTEGER_TYPES(YOKE_FORMAT_LABEL)
        YOKE_BOOL_TYPES(YOKE_FORMAT_LABEL)
        return f.template operator()<Integers>();
        default:
            return for_float_format(launch, operand, dtype, f);
    }
}

// Calls f with the format of any stored dtype. Fails for other dtypes.
template <class F>
inline yoke_status for_stored_format(const yoke_launch *launch, const char *operand,
                                     yoke_dtype dtype, const F &f)
{
    switch (dtype) {
        YOKE_NARROW_TYPES(YOKE_FORMAT_LABEL)
        case YOKE_F32:
            return f.template operator()<StoredFloats>();
            YOKE_ALL_INTEGER_CASES(YOKE_FORMAT_LABEL)
            YOKE_BOOL_TYPES(YOKE_FORMAT_LABEL)
            return f.template operator()<StoredIntegers>();
        default:
            return for_float_format(launch, operand, dtype, f);
    }
}

// Calls f with separate formats for halves and singles: for kernels with many elements in registers, because memory
// for singles would take twice the registers.
template <class F>
inline yoke_status for_row_format(const yoke_launch *launch, const char *operand, yoke_dtype dtype,
                                  const F &f)
{
    switch (dtype) {
        case YOKE_BF16:
        case YOKE_F16:
            return f.template operator()<Halves>();
        case YOKE_F32:
            return f.template operator()<Singles>();
        case YOKE_F64:
            return f.template operator()<Doubles>();
        default:
            return bad_dtype(launch, operand, dtype);
    }
}

template <class F>
inline yoke_status for_number_format(const yoke_launch *launch, const char *operand,
                                     yoke_dtype dtype, const F &f)
{
    if (dtype == YOKE_BOOL) return bad_dtype(launch, operand, dtype);
    return for_any_format(launch, operand, dtype, f);
}

// Format in which elements of T are computed.
template <class T>
using FormatOf = std::conditional_t<std::is_same_v<T, double>, Doubles,
                                    std::conditional_t<is_float<T>, Floats, Integers>>;

// Format of T and of types as wide as T.
template <class T>
using FormatOfStored =
    std::conditional_t<is_half<T>, Halves,
                       std::conditional_t<std::is_same_v<T, float>, Singles, FormatOf<T>>>;

// Returns the dtype under which a format handles another dtype: words differ only in size.
template <class Format>
inline int as_format(yoke_dtype dtype)
{
    if (!std::is_same_v<Format, Words>) return dtype;
    const int64_t size = dtype_size(dtype);
    return size == 8 ? YOKE_I64 : size == 4 ? YOKE_I32 : size == 2 ? YOKE_F16 : YOKE_U8;
}

// ---- values ------------------------------------------------------------------------------------------------------

// Returns a stored element as a value for computing.
template <class C, class T>
__device__ inline C value_as(T x)
{
    if constexpr (std::is_same_v<C, float>)
        return widen<T>(x);
    else
        return convert<C>(x);
}

// Converts values to elements as stored.
template <class T, int N, class C>
__device__ inline void narrow_all(const C (&from)[N], T (&to)[N])
{
    if constexpr (is_half<T> && std::is_same_v<C, float> && N % 2 == 0) {
        YOKE_UNROLL
        for (int k = 0; k < N; k += 2) narrow_pair<T>(from + k, to + k);
    } else {
        YOKE_UNROLL
        for (int k = 0; k < N; k++) to[k] = convert<T>(from[k]);
    }
}

// ---- packs -------------------------------------------------------------------------------------------------------

// Returns how far apart the halves of a pack of n elements are, if they do not lie side by side.
inline constexpr int64_t halves_apart(int64_t n)
{
    return kWarp * n / 2;
}

// Returns the element at which a pack of n elements begins.
__device__ inline int64_t place_of_pack(int64_t pack, int n, int64_t apart)
{
    if (apart == n / 2) return pack * n;
    return pack / kWarp * (kWarp * n) + pack % kWarp * (n / 2);
}

// Elements that a thread takes at once: 16 bytes of halves or of doubles.
template <class C>
inline constexpr int kAtOnce = std::is_same_v<C, double> ? 2 : 8;

// As many elements of half a thread's N as one access moves.
template <class T, int N>
inline constexpr int kHalfPack = std::clamp(N / 2, 1, 16 / (int)sizeof(T));

// Type by which an access moves N elements of T: words, if the elements fill whole words. If an access brings halves
// in pieces, each half costs an instruction to put together.
template <class T, int N>
using WordOf = std::conditional_t<sizeof(T) * N % 4 == 0, unsigned, T>;
template <class T, int N>
inline constexpr int kWords = N *(int)sizeof(T) / (int)sizeof(WordOf<T, N>);
template <class T, int N>
using WordPack = Pack<WordOf<T, N>, kWords<T, N>>;

template <class T, int N>
__device__ inline const WordOf<T, N> *as_words(const T *place)
{
    return reinterpret_cast<const WordOf<T, N> *>(place);
}
template <class T, int N>
__device__ inline WordOf<T, N> *as_words(T *place)
{
    return reinterpret_cast<WordOf<T, N> *>(place);
}

// Returns the alignment needed to load n elements at once.
inline int64_t pack_bytes(int64_t n, int64_t size)
{
    return min(16, n * size);
}

// N elements in their stored form. Loads of several operands come first and conversions after them, so no load waits
// for another.
template <class Format, int N>
struct Stored {
    static constexpr int kWidest = std::min((int)sizeof(typename Format::Value), Format::kSizes);
    unsigned words[(N * kWidest + 3) / 4];

    __device__ void load(const char *from, int size, int64_t i, int64_t apart)
    {
        if constexpr (Format::kSizes & 8)
            if (!(Format::kSizes & 7) || size == 8) return load_as<uint64_t>(from, i, apart);
        if constexpr (Format::kSizes & 4)
            if (!(Format::kSizes & 3) || size == 4) return load_as<uint32_t>(from, i, apart);
        if constexpr (Format::kSizes & 2)
            if (!(Format::kSizes & 1) || size == 2) return load_as<uint16_t>(from, i, apart);
        if constexpr (Format::kSizes & 1) load_as<uint8_t>(from, i, apart);
    }

    // Loads a single element.
    __device__ void load(const char *from, int size) { load(from, size, 0, 0); }

    template <class C>
    __device__ void unpack(int dtype, C (&to)[N]) const
    {
        Format::with(dtype, [&]<class T>() {
            if constexpr (is_half<T> && std::is_same_v<C, float> && N % 2 == 0) {
                YOKE_UNROLL
                for (int k = 0; k < N; k += 2) widen_pair<T>(words[k / 2], to + k);
            } else {
                T stored[N];
                memcpy(stored, words, sizeof stored);
                YOKE_UNROLL
                for (int k = 0; k < N; k++) to[k] = value_as<C>(stored[k]);
            }
        });
    }

    // Sets all N elements to the same value.
    template <class C>
    __device__ void fill(int dtype, C value)
    {
        Format::with(dtype, [&]<class T>() {
            T stored[N];
            YOKE_UNROLL
            for (int k = 0; k < N; k++) stored[k] = convert<T>(value);
            memcpy(words, stored, sizeof stored);
        });
    }

private:
    template <class T>
    __device__ void load_as(const char *data, int64_t i, int64_t apart)
    {
        constexpr int W = kHalfPack<T, N>;
        const T *from = reinterpret_cast<const T *>(data) + i;
        if constexpr (N == 1) {
            const T element = *from;  // a copy by memcpy() would load each byte
            memcpy(words, &element, sizeof element);
            return;
        }
        if constexpr (sizeof(T) * N <= 16)
            if (apart == N / 2) {
                const WordPack<T, N> pack = load_pack<kWords<T, N>>(as_words<T, N>(from));
                memcpy(words, &pack, sizeof pack);
                return;
            }
        YOKE_UNROLL
        for (int k = 0; k < N; k += W) {
            const WordPack<T, W> pack =
                load_pack<kWords<T, W>>(as_words<T, W>(from + (k < N / 2 ? k : k - N / 2 + apart)));
            memcpy(reinterpret_cast<char *>(words) + k * sizeof(T), &pack, sizeof pack);
        }
    }
};

template <int N, class T>
__device__ inline void put_packs(T *to, int64_t apart, const T (&from)[N])
{
    constexpr int W = kHalfPack<T, N>;
    if constexpr (sizeof(T) * N <= 16)
        if (apart == N / 2) {
            WordPack<T, N> pack;
            memcpy(&pack, from, sizeof pack);
            return store_pack<kWords<T, N>>(as_words<T, N>(to), pack);
        }
    YOKE_UNROLL
    for (int k = 0; k < N; k += W) {
        WordPack<T, W> pack;
        memcpy(&pack, from + k, sizeof pack);
        store_pack<kWords<T, W>>(as_words<T, W>(to + (k < N / 2 ? k : k - N / 2 + apart)), pack);
    }
}

// Stores N values in the format's stored type, from element i of a run on.
template <class Out, int N, class R>
__device__ inline void put_run(char *data, int dtype, int64_t i, int64_t apart, const R (&from)[N])
{
    Out::with(dtype, [&]<class T>() {
        T stored[N];
        narrow_all<T>(from, stored);
        put_packs<N>(reinterpret_cast<T *>(data) + i, apart, stored);
    });
}

template <class Out, class R>
__device__ inline void put_one(int dtype, char *place, R value)
{
    Out::with(dtype, [&]<class T>() { *reinterpret_cast<T *>(place) = convert<T>(value); });
}

// Returns a single element as a value.
template <class In>
__device__ inline typename In::Value value_at(const char *place, int dtype, int size)
{
    Stored<In, 1> stored;
    typename In::Value value[1];
    stored.load(place, size);
    stored.unpack(dtype, value);
    return value[0];
}

YOKE_CUDA_END
