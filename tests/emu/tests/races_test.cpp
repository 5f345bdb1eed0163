// Races of blocks on global memory: planted races must be found in every order of blocks, and no others.
#include "tests/emu/races.h"

#include <sys/mman.h>

#include <string>

#include "tests/emu/tests/findings.h"

namespace yoke::emu {

namespace {

constexpr int kBlocks = 5, kThreads = 32, kInts = 4096;

// Returns pages of integers for the kernels; they are the only watched memory.
int *memory()
{
    static int *const pages = static_cast<int *>(mmap(
        nullptr, kInts * sizeof(int), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    return pages;
}

int block()
{
    return (int)blockIdx.x;
}

// Expects a text on stderr for a kernel over zeroed memory, under each of several seeds. The second kilobyte is an
// operand.
template <class Kernel>
void expect(const char *text, const Kernel &kernel)
{
    const std::vector<Span> all = {{(char *)memory(), kInts * sizeof(int)}},
                            operands = {{(char *)memory() + 1024, 1024}};
    for (int seed = 0; seed < kSeeds; seed++) {
        set_seed(seed);
        std::fill_n(memory(), kInts, 0);
        testing::internal::CaptureStderr();
        const bool passed = run_watched("test", all, operands, kBlocks, kThreads, 0, kernel);
        const std::string told = testing::internal::GetCapturedStderr();
        EXPECT_EQ(passed, *text == 0) << "seed " << seed;
        EXPECT_EQ(told.empty(), *text == 0) << told;
        EXPECT_NE(told.find(text), std::string::npos) << told;
    }
}

}  // namespace

TEST(Races, OfTwoBlocksThatWriteOneByte)
{
    expect("byte 40 of operand 0 is written by blocks", [] {
        if (me() == 3 && (block() == 1 || block() == 4)) memory()[266] = block();
    });
    expect("byte 2048 of a block of memory is written by blocks", [] {
        if (me() == 0) memory()[512] = block() + 1;
    });
}

TEST(Races, OfABlockThatReadsWhatAnotherWrites)
{
    expect("depends on the order of the blocks", [] {
        const int before = block() ? memory()[block() - 1] : 7;
        if (me() == 0) memory()[block()] = before + 1;
    });
    expect("depends on the order of the blocks", [] {
        if (me() != 0) return;
        memory()[600] = block() == 2 ? 9 : memory()[600];  // others write the read value
        if (block() == 3) memory()[0] = memory()[600];
    });
}

// As the first value of all is.
TEST(Races, OfABlockThatWritesWhatIsThere)
{
    expect("is written by blocks", [] {
        if (me() == 0 && block() < 2) memory()[8] = block();
    });
}

TEST(Races, AreNoneOfBlocksThatKeepToTheirOwn)
{
    expect("", [] {
        reinterpret_cast<char *>(memory())[block() * kThreads + me()] =
            1;  // bytes of the same words
        memory()[1024 + (kBlocks - block()) * kThreads + me()] += me();
    });
    expect("", [] {
        if (me() == 0) memory()[2000] = 5;  // all of them the same
    });
}

TEST(Races, AreNoneOfAtomics)
{
    expect("", [] {
        atomicAdd(&memory()[0], me());
        atomicMax(&memory()[1], block());
        // The first block gets the first place, so the order is random, but no two blocks write to a common place.
        memory()[1024 + atomicAdd(&memory()[2], 1)] = block();
    });
    EXPECT_EQ(memory()[0], kBlocks * kThreads * (kThreads - 1) / 2) << "twice over the same memory";
    EXPECT_EQ(memory()[2], kBlocks * kThreads);
    expect("is written by blocks", [] {
        atomicAdd(&memory()[0], 1);
        if (me() == 0) memory()[1] = block() + 1;
    });
}

TEST(Races, LeaveOtherFindingsAsTheyAre)
{
    expect("no barrier between", [] {
        YOKE_SHARED(int, cell, 1);
        cell[0] = me();
        memory()[block()] = 1;
    });
}

}  // namespace yoke::emu
