// Common parts of a sort in shared memory and a selection from a row: elements as keys (kernels/common/sort_key.h)
// with their numbers in the row, and Batcher's bitonic network over the keys.
#pragma once

#include "kernels/common/sort_key.h"
#include "kernels/cuda/ops/indices.cuh"

YOKE_CUDA_BEGIN

constexpr int kTileLength = 2048;  // elements that a block sorts

// The rows of x along an axis, with the rows of results beside them.
struct SortRows {
    Walk<3> rows;     // x, values, indices
    int64_t step[3];  // bytes along the axis
    int64_t length, taken;
    yoke_dtype dtype;
    int size;  // bytes of an element
    bool descending, has_values;

    // Reads the bits of elements, `distance` bytes apart. Only `there` elements exist; the rest of `bits` is 0.
    template <int N>
    __device__ void read(const char *from, int64_t distance, int64_t there,
                         uint64_t (&bits)[N]) const
    {
        switch (size) {
            case 8:
                return read_as<uint64_t>(from, distance, there, bits);
            case 4:
                return read_as<uint32_t>(from, distance, there, bits);
            case 2:
                return read_as<uint16_t>(from, distance, there, bits);
            default:
                return read_as<uint8_t>(from, distance, there, bits);
        }
    }

    __device__ uint64_t key_of(uint64_t bits) const
    {
        switch (dtype) {
#define YOKE_KEY_CASE(value, type) \
    case value:                    \
        return directed<type>(bits);
            YOKE_ALL_TYPES(YOKE_KEY_CASE)
#undef YOKE_KEY_CASE
            default:
                return 0;
        }
    }

    __device__ uint64_t key_at(const char *element) const
    {
        uint64_t bits[1];
        read(element, 0, 1, bits);
        return key_of(bits[0]);
    }

    // Writes the element `index` of a row at place `rank` of the result. The element is moved, not computed from its
    // key, so -0 and every NaN keep their bits.
    __device__ void put(const Place<3> &row, int64_t rank, int64_t index) const
    {
        *(int64_t *)(row.data[2] + rank * step[2]) = index;
        if (has_values) put_value(row, rank, index);
    }

    // Writes the element as a value alone.
    __device__ void put_value(const Place<3> &row, int64_t rank, int64_t index) const
    {
        const char *from = row.data[0] + index * step[0];
        char *to = row.data[1] + rank * step[1];
        switch (size) {
            case 8:
                *(uint64_t *)to = *(const uint64_t *)from;
                return;
            case 4:
                *(uint32_t *)to = *(const uint32_t *)from;
                return;
            case 2:
                *(uint16_t *)to = *(const uint16_t *)from;
                return;
            default:
                *to = *from;
        }
    }

private:
    template <class T>
    __device__ uint64_t directed(uint64_t bits) const
    {
        using K = kernels::sort_key_type<T>;
        const K key = kernels::sort_key(kernels::bit_cast<T>((K)bits));
        return descending ? (K)~key : key;
    }

    template <class U, int N>
    __device__ static void read_as(const char *from, int64_t distance, int64_t there,
                                   uint64_t (&bits)[N])
    {
        YOKE_UNROLL
        for (int k = 0; k < N; k++) bits[k] = k < there ? *(const U *)(from + k * distance) : 0;
    }
};

// Pairs in shared memory. A key of up to 32 bits stands above its number in one word. If a key fills a word, its
// number is `apart` words further on.
template <class Words>
struct Network {
    const Words &word;
    int apart;  // 0: one word

    // Puts elements i and k in ascending order, or in descending order.
    __device__ void order(int i, int k, bool ascends) const
    {
        const uint64_t a = word[i], b = word[k];
        if (apart) {
            const uint64_t p = word[apart + i], q = word[apart + k];
            if ((a > b || (a == b && p > q)) != ascends) return;
            word[apart + i] = q;
            word[apart + k] = p;
        } else if ((a > b) != ascends) {
            return;
        }
        word[i] = b;
        word[k] = a;
    }

    // Sorts every run of `width` (a power of two) elements among `count` elements.
    __device__ void sort(int count, int width) const
    {
        for (int run = 2; run <= width; run *= 2)
            for (int distance = run / 2; distance > 0; distance /= 2) {
                __syncthreads();
                for (int pair = (int)threadIdx.x; pair < count / 2; pair += (int)blockDim.x) {
                    const int i = 2 * pair - (pair & (distance - 1));
                    order(i, i + distance, (i & (width - 1) & run) == 0);
                }
            }
        __syncthreads();
    }
};

// Selects and sorts the first s.taken elements of each row, by a block, without sorting the others. For keys of up to
// 32 bits, and at most kTileLength elements.
yoke_status select_first(const yoke_launch *launch, const SortRows &s);

YOKE_CUDA_END
