// Rounding of requests: core/memory/sizes.h.
#include "core/memory/sizes.h"

#include <gtest/gtest.h>

namespace yoke {
namespace {

TEST(MemorySizes, ARequestWastesAtMostAnEighthAndLittleBeyondAMebibyte)
{
    for (const uint64_t alignment : {1u, 64u, 512u, 4096u})
        for (uint64_t bytes = 1; bytes < (uint64_t{1} << 61); bytes += 1 + bytes / 97) {
            const uint64_t size = rounded_size(bytes, alignment);
            EXPECT_GE(size, bytes);
            EXPECT_EQ(size % alignment, 0u);
            EXPECT_EQ(rounded_size(size, alignment), size) << bytes;
            const uint64_t part = bytes <= kMaxSmall ? bytes / 8 + 1 : kLargeStep;
            EXPECT_LT(size - bytes, std::max<uint64_t>({64, alignment, part})) << bytes;
        }
    EXPECT_EQ(rounded_size(kMaxBlock, 64), kMaxBlock);
}

TEST(MemorySizes, EverySmallSizeHasAClass)
{
    for (const uint64_t alignment : {64u, 512u, 4096u})
        for (uint64_t bytes = 1; bytes <= kMaxSmall; bytes += 1 + bytes / 97) {
            const uint64_t size = rounded_size(bytes, alignment);
            ASSERT_LT(class_index(size), kSmallClasses);
            EXPECT_EQ(index_size(class_index(size)), size) << bytes << " aligned to " << alignment;
        }
    for (int index = 1; index < kSmallClasses; ++index) {
        EXPECT_GT(index_size(index), index_size(index - 1));
        EXPECT_EQ(class_index(index_size(index)), index);
    }
    EXPECT_EQ(index_size(kSmallClasses - 1), kMaxSmall);
}

}  // namespace
}  // namespace yoke
