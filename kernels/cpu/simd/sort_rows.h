// Stable sort and selection of a row, as keys (kernels/common/sort_key.h) with their indices.
//
// Contract: ascending by key; equal keys keep the order of their indices. K is the unsigned type of a key, I the type
// of an index. Rows lie densely in the caller's memory.
#pragma once

#include "kernels/common/sort_key.h"
#include "kernels/cpu/simd/simd.h"

YOKE_SIMD_BEGIN

template <class K, class I>
struct KeyedRow {
    K *key;
    I *index;
};

constexpr int64_t kInsertionRun = 16;
constexpr int64_t kMergeUpTo = 256;  // elements; beyond, passes over digits are faster

template <class K, class I>
inline void insertion_sort(KeyedRow<K, I> row, int64_t begin, int64_t end)
{
    for (int64_t i = begin + 1; i < end; i++) {
        K key = row.key[i];
        I index = row.index[i];
        int64_t j = i;
        for (; j > begin && row.key[j - 1] > key; j--) {
            row.key[j] = row.key[j - 1];
            row.index[j] = row.index[j - 1];
        }
        row.key[j] = key;
        row.index[j] = index;
    }
}

// Merges two sorted runs, [begin, middle) and [middle, end), into one.
template <class K, class I>
inline void merge_runs(KeyedRow<K, I> from, KeyedRow<K, I> to, int64_t begin, int64_t middle,
                       int64_t end)
{
    int64_t left = begin, right = middle;
    for (int64_t i = begin; i < end; i++) {
        bool take_right = left == middle || (right < end && from.key[right] < from.key[left]);
        int64_t taken = take_right ? right++ : left++;
        to.key[i] = from.key[taken];
        to.index[i] = from.index[taken];
    }
}

// Sorts a row by merging sorted runs. Returns the row that holds the result, `row` or `spare`.
template <class K, class I>
inline KeyedRow<K, I> merge_sort(KeyedRow<K, I> row, KeyedRow<K, I> spare, int64_t n)
{
    for (int64_t begin = 0; begin < n; begin += kInsertionRun)
        insertion_sort(row, begin, min(n, begin + kInsertionRun));
    for (int64_t width = kInsertionRun; width < n; width *= 2) {
        for (int64_t begin = 0; begin < n; begin += 2 * width)
            merge_runs(row, spare, begin, min(n, begin + width), min(n, begin + 2 * width));
        KeyedRow<K, I> other = row;
        row = spare;
        spare = other;
    }
    return row;
}

// Sorts a row by bytes, the least significant byte first. A byte that is the same in all keys costs no pass. Returns
// the row that holds the result, `row` or `spare`.
template <class K, class I>
inline KeyedRow<K, I> radix_sort(KeyedRow<K, I> row, KeyedRow<K, I> spare, int64_t n)
{
    constexpr int kDigits = (int)sizeof(K);
    int64_t counts[kDigits][256] = {};
    for (int64_t i = 0; i < n; i++)
        for (int digit = 0; digit < kDigits; digit++)
            counts[digit][(row.key[i] >> (8 * digit)) & 255]++;
    for (int digit = 0; digit < kDigits; digit++) {
        int64_t *place = counts[digit], begin = 0;
        if (place[(row.key[0] >> (8 * digit)) & 255] == n) continue;
        for (int value = 0; value < 256; value++) {
            int64_t count = place[value];
            place[value] = begin;
            begin += count;
        }
        for (int64_t i = 0; i < n; i++) {
            int64_t to = place[(row.key[i] >> (8 * digit)) & 255]++;
            spare.key[to] = row.key[i];
            spare.index[to] = row.index[i];
        }
        KeyedRow<K, I> other = row;
        row = spare;
        spare = other;
    }
    return row;
}

// Sorts a row whose keys are set, and makes its indices. Returns the row that holds the result, `row` or `spare`.
template <class K, class I>
inline KeyedRow<K, I> sort_row(KeyedRow<K, I> row, KeyedRow<K, I> spare, int64_t n)
{
    for (int64_t i = 0; i < n; i++) row.index[i] = (I)i;
    return n <= kMergeUpTo ? merge_sort(row, spare, n) : radix_sort(row, spare, n);
}

// ---- selection --------------------------------------------------------------------------------------------------

// Moves entry `at` of a heap of n down to its place. The root is the last entry in sort order.
template <class K, class I>
inline void sink(KeyedRow<K, I> heap, int64_t at, int64_t n)
{
    K key = heap.key[at];
    I index = heap.index[at];
    for (int64_t child = 2 * at + 1; child < n; child = 2 * at + 1) {
        auto sorts_after = [&](int64_t i, K k, I x) {
            return heap.key[i] > k || (heap.key[i] == k && heap.index[i] > x);
        };
        if (child + 1 < n && sorts_after(child + 1, heap.key[child], heap.index[child])) child++;
        if (!sorts_after(child, key, index)) break;
        heap.key[at] = heap.key[child];
        heap.index[at] = heap.index[child];
        at = child;
    }
    heap.key[at] = key;
    heap.index[at] = index;
}

// Writes the first k elements of the sorted row into `heap`, in order.
template <class K, class I>
inline void select_row(const K *key, int64_t n, KeyedRow<K, I> heap, int64_t k)
{
    constexpr int64_t kBlock = 64;
    for (int64_t i = 0; i < k; i++) {
        heap.key[i] = key[i];
        heap.index[i] = (I)i;
    }
    for (int64_t i = k / 2; i-- > 0;) sink(heap, i, k);
    for (int64_t begin = k; begin < n; begin += kBlock) {
        int64_t end = min(n, begin + kBlock);
        K worst = heap.key[0];
        int better = 0;
        for (int64_t i = begin; i < end; i++) better |= key[i] < worst;
        if (!better) continue;
        for (int64_t i = begin; i < end; i++) {
            if (key[i] >= heap.key[0]) continue;  // an equal one comes later, and loses
            heap.key[0] = key[i];
            heap.index[0] = (I)i;
            sink(heap, 0, k);
        }
    }
    for (int64_t last = k - 1; last > 0; last--) {
        K worst_key = heap.key[0];
        I worst_index = heap.index[0];
        heap.key[0] = heap.key[last];
        heap.index[0] = heap.index[last];
        sink(heap, 0, last);
        heap.key[last] = worst_key;
        heap.index[last] = worst_index;
    }
}

YOKE_SIMD_END
