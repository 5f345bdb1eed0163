// The division of convolutions for the team: parts write each element once and read all necessary elements. Large
// convolutions have many parts.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/cpu/conv_cut.h"

using yoke::cpu::ConvCut;
using yoke::kernels::Conv;
using yoke::kernels::ConvKind;

namespace {

char *const kBase = reinterpret_cast<char *>(uintptr_t{1} << 32);  // address of unread operands

Conv square(ConvKind kind, int64_t n, int64_t channels, int64_t side, int64_t kernel,
            int64_t stride, int64_t padding, int64_t dilation)
{
    const int64_t out = (side + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
    return {kind,
            YOKE_F32,
            n,
            channels,
            side,
            side,
            channels,
            out,
            out,
            kernel,
            kernel,
            {stride, stride},
            {padding, padding},
            {dilation, dilation},
            1,
            kBase,
            kBase,
            kBase,
            nullptr};
}

int64_t row_at(const void *address, int64_t width, int64_t channels)
{
    return (static_cast<const char *>(address) - kBase) / (width * channels * 4);
}

// Checks each row of a sweep's output: a single part writes the row, and reads the input that the whole convolution
// reads.
void expect_rows_once(const Conv &whole)
{
    const ConvCut cut(whole);
    const bool is_data = whole.kind == ConvKind::kData;
    std::vector<int> written((size_t)(whole.n * (is_data ? whole.h : whole.oh)));
    for (int64_t i = 0; i < cut.parts; i++) {
        const Conv part = cut.part(whole, i);
        ASSERT_GE(part.padding[0], 0);
        const int64_t x = row_at(part.x, whole.w, whole.c),
                      out = row_at(part.out, whole.ow, whole.o);
        for (int64_t row = 0; row < part.n * (is_data ? part.h : part.oh); row++)
            written[(size_t)((is_data ? x : out) + row)]++;
        if (part.n > 1) continue;
        // Tap k of a row of out is at one row of x for both, and within the part where it is within the image.
        const int64_t image = out / whole.oh, first = out % whole.oh;
        ASSERT_EQ(x / whole.h, image);
        for (int64_t row = 0; row < whole.oh; row++)
            for (int64_t k = 0; k < whole.kh; k++) {
                const int64_t at = row * whole.stride[0] - whole.padding[0] + k * whole.dilation[0];
                const int64_t in_part =
                    (row - first) * whole.stride[0] - part.padding[0] + k * whole.dilation[0];
                const bool is_out = row >= first && row < first + part.oh;
                const bool is_x = at >= x % whole.h && at < x % whole.h + part.h;
                if (is_out) {
                    ASSERT_EQ(at - x % whole.h, in_part);
                }
                if (at >= 0 && at < whole.h && (is_data ? is_x : is_out)) {
                    ASSERT_TRUE(is_x && is_out) << "row " << row << ", tap " << k << ", part " << i;
                }
            }
    }
    for (int times : written) EXPECT_EQ(times, 1);
}

}  // namespace

TEST(ConvCut, WritesEachRowOnce)
{
    for (ConvKind kind : {ConvKind::kForward, ConvKind::kData})
        for (int64_t n : {1, 2, 5})
            for (int64_t kernel : {1, 3, 4})
                for (int64_t stride : {1, 2, 5})
                    for (int64_t padding : {0, 1, 6})
                        for (int64_t dilation : {1, 3}) {
                            SCOPED_TRACE(testing::Message() << "n " << n << " kernel " << kernel
                                                            << " stride " << stride << " padding "
                                                            << padding << " dilation " << dilation);
                            expect_rows_once(
                                square(kind, n, 512, 30, kernel, stride, padding, dilation));
                        }
}

TEST(ConvCut, GivesATeamManyPartsOfOneLargeImage)
{
    for (ConvKind kind : {ConvKind::kForward, ConvKind::kData}) {
        EXPECT_EQ(ConvCut(square(kind, 1, 64, 8, 3, 1, 1, 1)).parts, 1);
        EXPECT_EQ(ConvCut(square(kind, 1, 64, 56, 3, 1, 1, 1)).parts, 2);
        EXPECT_GE(ConvCut(square(kind, 1, 64, 224, 3, 1, 1, 1)).parts, 16);
        EXPECT_EQ(ConvCut(square(kind, 64, 64, 224, 3, 1, 1, 1)).parts, 64);
    }
}
