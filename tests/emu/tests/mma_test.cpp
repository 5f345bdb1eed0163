// Matrices in the lanes of a warp, as the PTX ISA draws them, and late copies.
#include "kernels/cuda/ops/mma.cuh"
#include "tests/emu/tests/findings.h"

#include <cmath>

namespace yoke::emu {

using cuda::bf16;
using cuda::Chunk;
using cuda::f16;

namespace {

int lane()
{
    return warp_lane_number();
}

constexpr int kRows = 16, kColumns = 8, kDepth = 16;

// Returns small whole numbers, so that every product and sum is exact; no two rows or columns are alike.
int a_at(int row, int k)
{
    return (row * 7 + k * 3) % 11 - 5;
}
int b_at(int k, int column)
{
    return (k * 5 + column * 13 + k * column) % 9 - 4;
}

int product_at(int row, int column)
{
    int sum = 0;
    for (int k = 0; k < kDepth; k++) sum += a_at(row, k) * b_at(k, column);
    return sum;
}

template <class T>
unsigned pair(float first, float second)
{
    return cuda::narrowed_pair<T>(first, second);
}

// "Matrix Fragments for mma.m16n8k16": an accumulator's element i is of row groupID (+ 8 from the third on), column
// threadID_in_group * 2 + i % 2.
void expect_product(const float (&sum)[4])
{
    for (int i = 0; i < 4; i++) {
        const int row = lane() / 4 + (i < 2 ? 0 : 8), column = lane() % 4 * 2 + i % 2;
        if (sum[i] != (float)product_at(row, column) + 100 * (float)i)
            report("sum", "lane %d has %g as element %d", lane(), (double)sum[i], i);
    }
}

template <class T>
void multiply_parts()
{
    // a0, a1: row groupID; a2, a3: groupID + 8; a4 to a7: the same 8 columns on. b0, b1: rows threadID_in_group * 2 on
    // of column groupID; b2, b3: 8 rows on.
    const int group = lane() / 4, first = lane() % 4 * 2;
    const auto a = [&](int row, int k) {
        return pair<T>((float)a_at(row, k), (float)a_at(row, k + 1));
    };
    const auto b = [&](int k) { return pair<T>((float)b_at(k, group), (float)b_at(k + 1, group)); };
    const unsigned of_a[4] = {a(group, first), a(group + 8, first), a(group, first + 8),
                              a(group + 8, first + 8)};
    float sum[4] = {0, 100, 200, 300};
    cuda::multiply_add<T>(of_a, b(first), b(first + 8), sum);
    expect_product(sum);
}

// Multiplies factors from shared memory; b is stored as columns, or as rows and transposed on the way.
template <class T, bool kTransposed>
void multiply_loaded()
{
    YOKE_SHARED(Chunk, of_a, kRows * 2);
    YOKE_SHARED(Chunk, of_b, 16);
    const int me = lane();
    Chunk chunk, other;
    for (int i = 0; i < 8; i++) {
        chunk.at[i] = cuda::store<T>((float)a_at(me / 2, me % 2 * 8 + i)).bits;
        const int at = me % 2 * 8 + i;
        other.at[i] =
            cuda::store<T>((float)(kTransposed ? b_at(me % 16, i) : b_at(at, me / 2 % 8))).bits;
    }
    of_a[me] = chunk;
    if (me < 16) of_b[me] = other;
    __syncwarp();
    unsigned a[4], b[4];
    cuda::load_matrices<false>(of_a, me % 16 * 2 + me / 16, a);
    // The first two of four matrices: b's upper and its lower half.
    const int row = me % 8, half = me / 8 % 2;
    cuda::load_matrices<kTransposed>(of_b, kTransposed ? half * 8 + row : row * 2 + half, b);
    float sum[4] = {0, 100, 200, 300};
    cuda::multiply_add<T>(a, b[0], b[1], sum);
    expect_product(sum);
}

alignas(16) constexpr uint16_t kSource[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

}  // namespace

TEST(Products, HavePartsOfMatricesWhereThePtxIsaDrawsThem)
{
    expect_nothing(64, multiply_parts<f16>);
    expect_nothing(64, multiply_parts<bf16>);
}

TEST(Products, AreThoseOfMatricesThatWereLoadedAsTheyLieOrTransposed)
{
    expect_nothing(32, multiply_loaded<f16, false>);
    expect_nothing(32, multiply_loaded<bf16, true>);
}

TEST(Products, OfWhichALaneStaysAwayAreFound)
{
    expect_finding("waits for threads that never come here", 32, [] {
        if (me() != 7) multiply_parts<bf16>();
    });
    expect_finding("waits for threads that never come here", 32, [] {
        YOKE_SHARED(Chunk, rows, 32);
        rows[me()] = Chunk{};
        __syncwarp();
        unsigned to[4];
        float sum[4] = {};
        if (me() < 16)  // others are at another instruction
            cuda::load_matrices<false>(rows, me(), to);
        else
            cuda::multiply_add<bf16>({}, 0, 0, sum);
    });
}

TEST(Copies, ArriveWhenTheThreadHasWaited)
{
    expect_nothing(32, [] {
        YOKE_SHARED(Chunk, row, 64);
        cuda::copy_async(row, me(), kSource + 8, true);
        cuda::copy_async(row, me() + 32, kSource, false);
        cuda::wait_for_copies();
        __syncthreads();
        const Chunk there = row[31 - me()], zero = row[63 - me()];
        for (int i = 0; i < 8; i++)
            if (there.at[i] != 8 + i || zero.at[i] != 0) report("row", "a wrong element");
    });
}

TEST(Copies, OfGroupsBeforeTheLastOneArriveAlone)
{
    expect_nothing(1, [] {
        YOKE_SHARED(Chunk, row, 4);
        const auto there = [&row](int i) { return Chunk(row[i]).at[3] == 3; };
        for (int i = 0; i < 3; i++) {
            cuda::copy_async(row, i, kSource, true);
            if (i < 2) cuda::close_copies();
        }
        cuda::wait_for_older_copies();  // copies of two groups, and a copy in no group yet
        if (!there(0) || there(1) || there(2)) report("row", "not the first one alone");
        cuda::close_copies();
        cuda::wait_for_older_copies();
        if (!there(1) || there(2)) report("row", "not the second one alone");
        cuda::close_copies();  // an empty group: all that were begun are older
        cuda::wait_for_older_copies();
        if (!there(2)) report("row", "not the third one");
        cuda::copy_async(row, 3, kSource, true);
        cuda::wait_for_copies();
        if (!there(3)) report("row", "not what was in no group");
    });
}

TEST(Copies, ThatNobodyWaitedForAreNotThere)
{
    expect_nothing(1, [] {
        YOKE_SHARED(Chunk, row, 1);
        cuda::copy_async(row, 0, kSource, true);
        const Chunk early = row[0];
        if (!std::isnan(cuda::load<f16>(f16{early.at[3]}))) report("row", "it is there");
    });
    expect_finding("no barrier between", 64, [] {  // waited for too late
        YOKE_SHARED(Chunk, row, 64);
        cuda::copy_async(row, me(), kSource, true);
        __syncthreads();
        cuda::wait_for_copies();
        const Chunk other = row[63 - me()];
        (void)other;
    });
    expect_finding("no barrier between", 64, [] {  // begun while others still read
        YOKE_SHARED(Chunk, row, 64);
        row[me()] = Chunk{};
        __syncthreads();
        const Chunk other = row[63 - me()];
        (void)other;
        cuda::copy_async(row, me(), kSource, true);
    });
}

TEST(Copies, FromAnAddressThatIsNotAlignedAreFound)
{
    expect_finding("is not aligned", 32, [] {
        YOKE_SHARED(Chunk, row, 32);
        cuda::copy_async(row, me(), kSource + 1, true);
    });
}

}  // namespace yoke::emu
