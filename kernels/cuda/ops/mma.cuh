// Products of halves by tensor cores, and the transport of their factors: PTX's mma, ldmatrix and cp.async. Each is
// behind a function, of which the emulation has a model (tests/emu/mma.h).
//
// Contract
//  * All lanes of a warp call load_matrices and multiply_add together. The PTX ISA defines each lane's elements for
//    m16n8k16: of sixteen rows and eight columns, lane l has rows l / 4 and l / 4 + 8, and columns l % 4 * 2 and the
//    next column.
//  * Shared memory is an array of Chunks of eight halves. ldmatrix reads eight chunks at once, each a row of a small
//    matrix. If these lie in different banks (chunk_at), no read waits for another.
//  * Cards before 8.0 do not support bfloat16 and cp.async. Code for these cards does not use this file (kHasMma),
//    and host code starts no kernels that need it there (kMmaArch).
#pragma once

#include "kernels/cuda/ops/halves.cuh"

YOKE_CUDA_BEGIN

constexpr int kMmaArch = 80;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr bool kHasMma = false;
#else
constexpr bool kHasMma = true;
#endif

using Chunk = Pack<uint16_t, 8>;

// Returns the place of chunk `chunk` of row `row`, in rows of kChunks. Eight neighbouring rows have the chunk in
// eight different banks. Eight rows further, the place is 8 * kChunks later.
template <int kChunks>
__device__ inline int chunk_at(int row, int chunk)
{
    static_assert(kChunks % 8 == 0, "rows of whole turns of the banks");
    return row * kChunks + (chunk ^ (row % 8));
}

#if defined(YOKE_EMULATED)
template <class Room>
inline void copy_async(const Room &room, int at, const void *from, bool there)
{
    emu::copy_async(room, at, from, there);
}

inline void wait_for_copies()
{
    emu::wait_for_copies();
}

inline void close_copies()
{
    emu::close_copies();
}

inline void wait_for_older_copies()
{
    emu::wait_for_older_copies();
}

template <bool kTransposed, class Room>
inline void load_matrices(const Room &room, int at, unsigned (&to)[4])
{
    emu::load_matrices(room, at, kTransposed, to);
}

template <class T>
inline void multiply_add(const unsigned (&a)[4], unsigned b0, unsigned b1, float (&sum)[4])
{
    const auto widened = [](unsigned pair, int k) {
        T half;
        half.bits = (uint16_t)(pair >> 16 * k);
        return load<T>(half);
    };
    emu::Factors own;
    for (int i = 0; i < 8; i++) own.a[i] = widened(a[i / 2], i % 2);
    for (int i = 0; i < 4; i++) own.b[i] = widened(i < 2 ? b0 : b1, i % 2);
    emu::multiply_add(own, sum);
}
#else
// Begins to copy a chunk from device memory. If not `there`, copies zeros, and `from` may be any address. The thread
// itself may read the chunk only after wait_for_copies, and other threads only after a barrier after that.
template <class Room>
__device__ inline void copy_async(Room &room, int at, const void *from, bool there)
{
    const unsigned to = (unsigned)__cvta_generic_to_shared(&room[0]) + at * (int)sizeof(Chunk);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to),
                 "l"(__cvta_generic_to_global(from)), "r"(there ? 16 : 0)
                 : "memory");
}

// Waits for all copies begun by this thread.
__device__ inline void wait_for_copies()
{
    asm volatile("cp.async.wait_all;" ::: "memory");
}

// Closes the group of the copies begun since the last group.
__device__ inline void close_copies()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits for all closed groups of copies except the last.
__device__ inline void wait_for_older_copies()
{
    asm volatile("cp.async.wait_group 1;" ::: "memory");
}

// Loads four matrices of 8 x 8 halves. Lanes 0 to 7 give by `at` the chunks of the first matrix's rows, lanes 8 to 15
// those of the second, and so on. Lane l gets, of each matrix or of its transpose, the pair of row l / 4 at columns l
// % 4 * 2 on.
template <bool kTransposed, class Room>
__device__ inline void load_matrices(const Room &room, int at, unsigned (&to)[4])
{
    const unsigned from = (unsigned)__cvta_generic_to_shared(&room[0]) + at * (int)sizeof(Chunk);
    if constexpr (kTransposed)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
    else
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                     : "r"(from)
                     : "memory");
}

// Adds the product a b, of 16 x 16 and 16 x 8 elements of T, to sum.
template <class T>
__device__ inline void multiply_add(const unsigned (&a)[4], unsigned b0, unsigned b1,
                                    float (&sum)[4])
{
    // All lanes of a warp run the instruction together. It is volatile, so the compiler does not move it.
#define YOKE_MMA(type)                                                                  \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." type "." type                 \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};" \
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])               \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
    if constexpr (std::is_same_v<T, bf16>)
        YOKE_MMA("bf16");
    else
        YOKE_MMA("f16");
#undef YOKE_MMA
}
#endif

// Returns x, hidden from the compiler. So values computed from x are computed at their use, and do not fill registers
// before a loop.
__device__ inline int unknown(int x)
{
#if !defined(YOKE_EMULATED)
    asm volatile("" : "+r"(x));
#endif
    return x;
}

// Returns two values as neighbouring halves of a word, the first value lower.
template <class T>
__device__ inline unsigned narrowed_pair(float first, float second)
{
    const float from[2] = {first, second};
    T to[2];
    narrow_pair<T>(from, to);
    return (unsigned)to[0].bits | (unsigned)to[1].bits << 16;
}

YOKE_CUDA_END
