// Bytes behind the operands of a launch: the watched bytes, and the finding after a change.
#include "tests/emu/untouched.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

// Returns the end of a block in the test's own memory, 512 bytes a block.
const void *fake_end_of_block(const void *place)
{
    return (const char *)((uintptr_t)place / 512 * 512 + 512);
}

namespace yoke::emu {

namespace {

struct Memory {
    alignas(512) std::array<unsigned char, 512> bytes{};

    yoke_operand operand(size_t first, size_t count, uint32_t flags)
    {
        yoke_operand made{};
        made.flags = flags;
        made.begin = made.data = bytes.data() + first;
        made.bytes = count;
        return made;
    }
};

// Tells whether a kernel that changes byte `changed` has the finding of an overrun.
bool is_overrun(Memory &memory, const std::vector<yoke_operand> &operands, size_t changed)
{
    yoke_launch launch{};
    launch.operands = operands.data();
    launch.operand_count = (int32_t)operands.size();
    Untouched untouched(&launch);
    untouched.keep();
    memory.bytes[changed] ^= 1;
    testing::internal::CaptureStderr();
    const bool holds = untouched.holds("test");
    const std::string told = testing::internal::GetCapturedStderr();
    EXPECT_EQ(holds, told.empty()) << told;
    return !holds;
}

}  // namespace

TEST(Untouched, BytesBehindAnOperandUpToTheNextBlockAreWatched)
{
    Memory memory;
    const std::vector<yoke_operand> operands{memory.operand(0, 40, YOKE_OPERAND_WRITE)};
    EXPECT_FALSE(is_overrun(memory, operands, 39));
    EXPECT_TRUE(is_overrun(memory, operands, 40));
    EXPECT_TRUE(is_overrun(memory, operands, 255));
    EXPECT_FALSE(is_overrun(memory, operands, 256));
}

TEST(Untouched, WhatIsOnlyReadOrFillsItsBlockHasNothingBehindIt)
{
    Memory memory;
    EXPECT_FALSE(is_overrun(memory, {memory.operand(0, 40, 0)}, 40));
    EXPECT_FALSE(is_overrun(memory, {memory.operand(0, 256, YOKE_OPERAND_WRITE)}, 256));
}

TEST(Untouched, AnOperandMayWriteBehindAnotherOne)
{
    Memory memory;
    const std::vector<yoke_operand> operands{memory.operand(0, 40, YOKE_OPERAND_WRITE),
                                             memory.operand(40, 60, YOKE_OPERAND_WRITE)};
    EXPECT_FALSE(is_overrun(memory, operands, 40));
    EXPECT_TRUE(is_overrun(memory, operands, 100));
}

}  // namespace yoke::emu
