// Findings of the emulation: wrong kernels must be found in every order of their threads, and right kernels must have
// no finding.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "tests/emu/tests/findings.h"

namespace yoke::emu {

// ---- races ----------------------------------------------------------------------------------------------------------

TEST(Findings, TwoThreadsThatWriteOneElement)
{
    expect_finding("no barrier between", 64, [] {
        YOKE_SHARED(int, cell, 1);
        if (me() == 3 || me() == 40) cell[0] = me();
    });
    expect_finding("no barrier between", 32, [] {
        YOKE_SHARED(int, cell, 1);
        if (me() < 2) cell[0] = me();
    });
}

TEST(Findings, AMissingBarrierBetweenWritingAndReading)
{
    expect_finding("no barrier between", 64, [] {
        YOKE_SHARED(float, row, 64);
        row[me()] = 1.f;
        volatile float other = row[63 - me()];
        (void)other;
    });
}

TEST(Findings, AMissingBarrierBetweenReadingAndTheNextWriting)
{
    expect_finding("no barrier between", 64, [] {
        YOKE_SHARED(float, row, 64);
        for (int i = 0; i < 2; i++) {
            row[me()] = 1.f;
            __syncthreads();
            volatile float other = row[(me() + 32) % 64];
            (void)other;
        }
    });
}

// The reader in the middle is neither the first nor the last.
TEST(Findings, AWriterBesideOneOfManyReaders)
{
    expect_finding("no barrier between", 128, [] {
        YOKE_SHARED(int, cell, 1);
        volatile int seen = cell[0];
        (void)seen;
        if (me() == 70) cell[0] = 1;
    });
}

TEST(Findings, AShuffleTakenForABarrier)
{
    expect_finding("no barrier between", 32, [] {
        YOKE_SHARED(int, row, 32);
        row[me()] = me();
        (void)__shfl_sync(kWholeWarp, me(), 0);
        volatile int other = row[31 - me()];
        (void)other;
    });
}

TEST(Findings, AWarpsBarrierTakenForTheBlocks)
{
    expect_finding("no barrier between", 64, [] {
        YOKE_SHARED(int, row, 64);
        row[me()] = me();
        __syncwarp();
        volatile int other = row[63 - me()];
        (void)other;
    });
}

TEST(Findings, ARaceInTheDynamicArray)
{
    expect_finding(
        "no barrier between", 64,
        [] {
            YOKE_DYNAMIC_SHARED(double, row);
            row[me() % 60] = 1.0;
        },
        60 * sizeof(double));
}

// ---- barriers and shuffles ------------------------------------------------------------------------------------------

TEST(Findings, ABarrierThatSomeThreadsReachInAnotherPlace)
{
    expect_finding("while others of the block wait at", 64, [] {
        if (me() < 32)
            __syncthreads();
        else
            __syncthreads();
    });
}

TEST(Findings, ABarrierInsideABranchOfAWarpThatShufflesElsewhere)
{
    expect_finding("never come", 32, [] {
        if (me() == 5)
            __syncthreads();
        else
            (void)__shfl_sync(kWholeWarp, me(), 0);
    });
}

TEST(Findings, ABarrierWithAVoteGivesAllThreadsTheSame)
{
    expect_nothing(96, [] {
        for (int turn = 0; turn < 3; turn++) {
            const bool any = __syncthreads_or(me() == 70 && turn == 1);
            if (any != (turn == 1)) report(YOKE_EMU_PLACE, "another answer");
        }
    });
}

TEST(Findings, AShuffleWhoseWarpLanesDoNotCome)
{
    expect_finding("never come", 32, [] {
        if (me() < 16) (void)__shfl_down_sync(kWholeWarp, me(), 1);
    });
    expect_finding("never come", 32, [] {
        if (me() == 31) return;
        (void)__ballot_sync(kWholeWarp, true);
    });
    expect_finding("never come", 32, [] {
        if (me() < 16)
            __syncwarp();
        else
            (void)__any_sync(kWholeWarp, true);
    });
}

TEST(Findings, AMaskWithoutTheCaller)
{
    expect_finding("leaves out the caller", 32, [] { (void)__shfl_xor_sync(kHalf, me(), 1); });
}

TEST(Findings, AShuffleFromALaneOutsideTheMaskGivesNoNumber)
{
    std::vector<float> got(32, 0.f);
    expect_nothing(32, [&] {
        if (me() < 16) got[(size_t)me()] = __shfl_sync(kHalf, 1.f, me() + 16);
    });
    for (int i = 0; i < 16; i++) EXPECT_TRUE(std::isnan(got[(size_t)i])) << i;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

TEST(Findings, AnIndexBeyondASharedArray)
{
    expect_finding("index 64 of an array of 64", 65, [] {
        YOKE_SHARED(char, row, 64);
        row[me()] = 1;
    });
    expect_finding("index -1 of an array of 64", 32, [] {
        YOKE_SHARED(char, row, 64);
        if (me() == 0) row[me() - 1] = 1;
    });
    expect_finding(
        "of an array of 10", 32,
        [] {
            YOKE_DYNAMIC_SHARED(int, row);
            row[me()] = 1;
        },
        40);
}

TEST(Findings, AnIndexBeyondAnArrayOfAThreadsOwn)
{
    struct Ends {
        int length, own[4];
    };
    for (const int length : {4, 5}) {
        const auto kernel = [length] {
            Ends ends{length, {}};
            int *volatile kept = ends.own;  // not to be left out
            for (int i = 0; i < ends.length; i++) ends.own[i] = i;
            (void)*kept;
        };
        if (length == 4)
            expect_nothing(32, kernel);
        else
            expect_finding("index 4 of an array that is shorter", 32, kernel);
    }
}

TEST(Findings, OneArrayAsElementsOfTwoSizes)
{
    expect_finding(
        "elsewhere", 32,
        [] {
            YOKE_DYNAMIC_SHARED(int, words);
            YOKE_DYNAMIC_SHARED(double, numbers);
            if (me() == 0) words[0] = 1;
            if (me() == 0) numbers[0] = 1;
        },
        64);
}

TEST(Findings, AVectorAccessThatIsNotAligned)
{
    alignas(16) float data[64] = {};
    expect_finding("is not aligned", 32, [&] {
        if (me() == 7) (void)yoke::cuda::load_pack<4>(data + 1);
    });
    expect_finding("is not aligned", 32, [&] {
        if (me() == 7) yoke::cuda::store_pack<2>(data + 3, {});
    });
}

TEST(Findings, SharedMemoryBeginsWithoutNumbers)
{
    bool all = true;
    expect_nothing(
        32,
        [&] {
            YOKE_SHARED(float, first, 32);
            YOKE_DYNAMIC_SHARED(double, second);
            all &= std::isnan((float)first[me()]) && std::isnan((double)second[me()]);
            first[me()] = 1.f;  // the next block must not see this value
        },
        32 * sizeof(double));
    EXPECT_TRUE(all);
}

// ---- order ----------------------------------------------------------------------------------------------------------

TEST(Order, BlocksAndWarpsComeInAnOrderOfTheSeed)
{
    std::set<std::vector<int>> blocks, warps;
    for (int seed = 0; seed < kSeeds; seed++) {
        set_seed(seed);
        std::vector<int> of_blocks, of_warps;
        run("test", 8, 32, 0, [&] {
            if (me() == 0) of_blocks.push_back((int)blockIdx.x);
        });
        run("test", 1, 256, 0, [&] {
            if (me() % 32 == 0) of_warps.push_back(me() / 32);
        });
        EXPECT_EQ(of_blocks.size(), 8u);
        EXPECT_EQ(of_warps.size(), 8u);
        blocks.insert(of_blocks);
        warps.insert(of_warps);
    }
    EXPECT_GE(blocks.size(), (size_t)kSeeds - 1);
    EXPECT_GE(warps.size(), (size_t)kSeeds - 1);
}

TEST(Order, EveryThreadOfEveryBlockRunsOnceWhetherItWaitsOrNot)
{
    for (int seed = 0; seed < kSeeds; seed++) {
        set_seed(seed);
        std::vector<int> seen(3 * 2 * 40 * 2, 0);
        const std::string told = findings(dim3(3, 2), dim3(40, 2), 0, [&] {
            const unsigned block = blockIdx.y * gridDim.x + blockIdx.x,
                           thread = threadIdx.y * blockDim.x + threadIdx.x;
            if (thread >= 32 && thread < 64 && block % 2) (void)__ballot_sync(kWholeWarp, true);
            seen[block * blockDim.x * blockDim.y + thread]++;
        });
        EXPECT_EQ(told, "");
        EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    }
}

// ---- kernels that are right -----------------------------------------------------------------------------------------

TEST(Right, ReductionsOfBlocksOfAnySize)
{
    for (const int threads : {32, 64, 512, 1024}) {
        std::vector<double> sums;
        expect_nothing(threads, [&] {
            double total = 0;
            for (int round = 0; round < 3; round++)
                total = yoke::cuda::reduce_block((double)me(), 0.0,
                                                 [](double a, double b) { return a + b; });
            if (me() == threads / 2) sums.push_back(total);
        });
        EXPECT_EQ(sums, std::vector<double>(sums.size(), threads * (threads - 1) / 2.0));
        EXPECT_EQ(sums.size(), 3u * kSeeds);
    }
}

TEST(Right, RowsThatAreWrittenReadAndWrittenAgainBetweenBarriers)
{
    expect_nothing(64, [] {
        YOKE_SHARED(float, row, 64);
        for (int i = 0; i < 3; i++) {
            row[me()] = (float)me();
            __syncthreads();
            if ((float)row[63 - me()] != (float)(63 - me())) emu::report("row", "stale");
            __syncthreads();
        }
    });
}

TEST(Right, AWarpsScanWithItsOwnBarriers)
{
    expect_nothing(96, [] {
        YOKE_SHARED(int, row, 96);
        row[me()] = 1;
        for (int distance = 1; distance < 32; distance *= 2) {
            __syncwarp();
            const int left = me() % 32 >= distance ? (int)row[me() - distance] : 0;
            __syncwarp();
            row[me()] = row[me()] + left;
        }
        if ((int)row[me()] != me() % 32 + 1) emu::report("row", "a wrong sum");
    });
}

TEST(Right, ThreadsThatEndBeforeABarrierOfTheOthers)
{
    expect_nothing(128, [] {
        if (me() >= 100) return;
        __syncthreads();
    });
}

TEST(Right, HalvesOfAWarpThatGoTheirOwnWays)
{
    expect_nothing(32, [] {
        const unsigned mask = me() < 16 ? kHalf : ~kHalf;
        for (int i = 0; i < (me() < 16 ? 2 : 5); i++)
            if (__shfl_sync(mask, me(), me() / 16 * 16) != me() / 16 * 16)
                emu::report("halves", "another half's number");
    });
}

}  // namespace yoke::emu
