// Accesses to shared memory: additions, barriers of some warp lanes, and the memory's size.
#include "tests/emu/tests/findings.h"

namespace yoke::emu {

using cuda::shared_add;

TEST(Findings, ABarrierOfSomeWarpLanesOrdersThoseAlone)
{
    expect_finding("no barrier between", 32, [] {
        YOKE_SHARED(int, row, 32);
        row[me()] = me();
        if (me() < 16) __syncwarp(kHalf);
        volatile int other = row[31 - me()];  // from the other half
        (void)other;
    });
    expect_finding("no barrier between", 32,
                   [] {  // each half by itself; this does not order the halves
                       YOKE_SHARED(int, row, 32);
                       row[me()] = me();
                       __syncwarp(me() < 16 ? kHalf : ~kHalf);
                       volatile int other = row[31 - me()];
                       (void)other;
                   });
}

TEST(Findings, AnAdditionBesideAReadOrAWrite)
{
    for (const int threads : {32, 64}) {
        expect_finding("(adding)", threads, [] {
            YOKE_SHARED(unsigned, sum, 1);
            if (me() == 0) sum[0] = 0;
            __syncthreads();
            shared_add(sum, 0, 1u);
            volatile unsigned seen = sum[0];  // while others may still add
            (void)seen;
        });
        expect_finding("(adding)", threads, [] {
            YOKE_SHARED(unsigned, sum, 1);
            if (me() == 0) sum[0] = 0;
            shared_add(sum, 0, 1u);  // perhaps before it is 0
        });
    }
}

TEST(Findings, SharedMemoryThatALaunchAndItsArraysExceedTogether)
{
    const auto kernel = [] {
        YOKE_SHARED(char, fixed, 32 * 1024);
        YOKE_DYNAMIC_SHARED(char, more);
        fixed[me()] = more[me()] = 1;
    };
    expect_finding("51200 bytes of shared memory", 32, [] {
        YOKE_SHARED(char, one, 20 * 1024);
        YOKE_SHARED(char, two, 30 * 1024);
        one[me()] = two[me()] = 1;
    });
    expect_finding("17408 of them the launch's; 49152 are allowed", 32, kernel, 17 * 1024);
    expect_nothing(32, kernel, 16 * 1024);
}

TEST(Right, HalvesOfAWarpThatKeepToThemselvesOrMeetAgain)
{
    expect_nothing(64, [] {
        YOKE_SHARED(int, row, 64);
        row[me()] = me();
        __syncwarp(me() % 32 < 16 ? kHalf : ~kHalf);
        const int near = row[me() ^ 15];
        __syncwarp();
        const int far = row[me() ^ 31];
        if (near != (me() ^ 15) || far != (me() ^ 31)) emu::report("row", "a wrong element");
    });
}

TEST(Right, ThreadsThatAddToOneElement)
{
    expect_nothing(96, [] {
        YOKE_SHARED(unsigned, sum, 1);
        if (me() == 0) sum[0] = 0;
        __syncthreads();
        shared_add(sum, 0, 1u);
        shared_add(sum, 0, 1u);
        __syncthreads();
        if (sum[0] != 192u) emu::report("sum", "a wrong sum");
    });
}

}  // namespace yoke::emu
