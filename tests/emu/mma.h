// Replacement for the PTX in kernels/cuda/ops/mma.cuh: copies to shared memory that arrive late, loads of small
// matrices by a warp, and products of matrices. Their parts lie in the warp's lanes as the PTX ISA draws them for
// ldmatrix and mma.m16n8k16 ("Matrix Fragments for mma.m16n8k16").
#pragma once

#include <array>
#include <functional>

#include "tests/emu/emu.h"

namespace yoke::emu {

// ---- copies ---------------------------------------------------------------------------------------------------------

// Lets a copy wait for wait_for_copies of the same thread; or, if close_copies was called twice since, for
// wait_for_older_copies.
void keep_copy(std::function<void()> copy);
void wait_for_copies();
void close_copies();
void wait_for_older_copies();

// Begins a copy to an element of shared memory. Until the thread has waited, the element is NaN. The copy counts as a
// write at its beginning and at its end. So a reader between two barriers that do not enclose both is found.
template <class T>
void copy_async(const Shared<T> &room, int64_t i, const void *from, bool there)
{
    if ((uintptr_t)from % sizeof(T)) report("cp.async", "%p is not aligned", from);
    T value;
    memset(&value, 0xff, sizeof value);
    room[i] = value;
    keep_copy([room, i, from, there] {
        T arrived{};
        if (there) memcpy(&arrived, from, sizeof arrived);
        room[i] = arrived;
    });
}

// ---- matrices -------------------------------------------------------------------------------------------------------

// Gathers the elements that the warp's lanes name, each a row of one of four matrices: lane 8 * m + r names row r of
// matrix m.
std::array<int64_t, kWarp> gather_rows(int64_t mine);

template <class T>
void load_matrices(const Shared<T> &room, int64_t mine, bool transposed, unsigned (&to)[4])
{
    const std::array<int64_t, kWarp> rows = gather_rows(mine);
    const int lane = warp_lane_number();
    const auto half = [&](int row, int column) {
        return (unsigned)T(room[rows[(size_t)row]]).at[column];
    };
    for (int m = 0; m < 4; m++) {
        const int near = lane / 4, far = lane % 4 * 2;
        to[m] = transposed ? half(8 * m + far, near) | half(8 * m + far + 1, near) << 16
                           : half(8 * m + near, far) | half(8 * m + near, far + 1) << 16;
    }
}

// A lane's part of a, 16 x 16, and of b, 16 x 8, in the order of its registers.
struct Factors {
    float a[8], b[4];
};
// sum += a b; products and sums are exact to double.
void multiply_add(const Factors &own, float (&sum)[4]);

}  // namespace yoke::emu
