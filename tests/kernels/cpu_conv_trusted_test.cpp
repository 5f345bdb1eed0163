// Tests of the guard that keeps convolutions from oneDNN. The guard is the same on every processor.
#include <gtest/gtest.h>

#include "kernels/cpu/conv_trusted.h"

using yoke::cpu::is_proven;
using yoke::cpu::is_small_enough;
using yoke::kernels::Conv;
using yoke::kernels::ConvKind;

namespace {

constexpr ConvKind kKinds[] = {ConvKind::kForward, ConvKind::kData, ConvKind::kWeight};

// Returns a convolution of 32 channels in groups of `each`, 32 x 32, with a window of 3 x 3 that keeps the size.
Conv same(ConvKind kind, yoke_dtype dtype, int64_t each, int64_t dilation_y, int64_t dilation_x)
{
    return {kind,
            dtype,
            4,
            32,
            32,
            32,
            32,
            32,
            32,
            3,
            3,
            {1, 1},
            {dilation_y, dilation_x},
            {dilation_y, dilation_x},
            32 / each,
            nullptr,
            nullptr,
            nullptr,
            nullptr};
}

}  // namespace

TEST(ConvTrusted, GivesOneDnnNoDilatedWindowOfBf16OnAnyProcessor)
{
    for (ConvKind kind : kKinds)
        for (int64_t each : {1, 2, 8, 16, 32}) {
            EXPECT_FALSE(is_proven(same(kind, YOKE_BF16, each, 2, 1))) << each;
            EXPECT_FALSE(is_proven(same(kind, YOKE_BF16, each, 1, 2))) << each;
            EXPECT_FALSE(is_proven(same(kind, YOKE_BF16, each, 3, 3))) << each;
        }
}

TEST(ConvTrusted, GivesOneDnnPlainWindowsOfBf16AndAnyOfF32)
{
    for (ConvKind kind : kKinds)
        for (int64_t each : {1, 8, 32}) {
            EXPECT_TRUE(is_proven(same(kind, YOKE_BF16, each, 1, 1))) << each;
            EXPECT_TRUE(is_proven(same(kind, YOKE_F32, each, 2, 2))) << each;
        }
}

TEST(ConvTrusted, GivesOneDnnNoGradientByWeightOfAStridedPointWithARaggedBlockOfChannels)
{
    for (yoke_dtype dtype : {YOKE_F32, YOKE_BF16})
        for (int64_t channels : {3, 8, 20, 24}) {
            Conv point = same(ConvKind::kWeight, dtype, 32, 1, 1);
            point.kh = point.kw = 1, point.padding[0] = point.padding[1] = 0, point.c = channels;
            EXPECT_TRUE(is_proven(point)) << channels;
            point.stride[1] = 2;
            EXPECT_FALSE(is_proven(point)) << channels;
            point.c = 48;
            EXPECT_TRUE(is_proven(point));
        }
}

TEST(ConvTrusted, GivesOneDnnNoStridedPointOfBf16WithARaggedBlockOfChannels)
{
    for (ConvKind kind : kKinds)
        for (int64_t channels : {1, 3, 17, 24}) {
            Conv point = same(kind, YOKE_BF16, 32, 1, 1);
            point.kh = point.kw = 1, point.padding[0] = point.padding[1] = 0, point.stride[1] = 2;
            EXPECT_TRUE(is_proven(point));
            point.o = channels;
            EXPECT_FALSE(is_proven(point)) << channels;
            point.o = 48, point.c = channels;
            EXPECT_FALSE(is_proven(point)) << channels;
        }
}

TEST(ConvTrusted, LooksAtWhatStridesLeaveOutAndAtPaddingThatAWindowMeetsAlone)
{
    Conv apart = same(ConvKind::kData, YOKE_BF16, 32, 1, 1);
    apart.stride[0] = 4, apart.oh = 8;
    EXPECT_FALSE(is_proven(apart));
    Conv alone = same(ConvKind::kWeight, YOKE_BF16, 32, 1, 1);
    alone.padding[1] = 3, alone.ow = 36;
    EXPECT_FALSE(is_proven(alone));
    Conv behind = same(ConvKind::kWeight, YOKE_BF16, 32, 1, 1);
    behind.padding[0] = 2, behind.oh = 36;
    EXPECT_FALSE(is_proven(behind));
    Conv overlapping = same(ConvKind::kForward, YOKE_BF16, 32, 1, 1);
    overlapping.stride[1] = 2, overlapping.ow = 16;
    EXPECT_TRUE(is_proven(overlapping));
    overlapping.c = 64;
    EXPECT_FALSE(is_proven(overlapping));
    overlapping.kind = ConvKind::kData;
    EXPECT_TRUE(is_proven(overlapping));
    Conv point = same(ConvKind::kData, YOKE_BF16, 32, 1, 1);
    point.kh = point.kw = 1, point.padding[0] = point.padding[1] = 0, point.stride[0] = 2;
    EXPECT_TRUE(is_proven(point));
    point.padding[1] = 1;
    EXPECT_FALSE(is_proven(point));
}

TEST(ConvTrusted, GivesOneDnnNoImageNorWeightWhoseBytesLeave31Bits)
{
    Conv conv = same(ConvKind::kForward, YOKE_F32, 32, 1, 1);
    EXPECT_TRUE(is_small_enough(conv));
    conv.w = conv.ow = int64_t{1} << 19;  // 2 GiB an image
    EXPECT_FALSE(is_small_enough(conv));
    conv.w = conv.ow = (int64_t{1} << 19) - 1, conv.n = 1;
    EXPECT_TRUE(is_small_enough(conv));
    conv.o = int64_t{1} << 21, conv.w = conv.ow = conv.oh = 1;
    EXPECT_FALSE(is_small_enough(conv));
}
