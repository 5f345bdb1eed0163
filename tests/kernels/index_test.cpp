// Places of indices, replacements by masks, and elements kept by triangles.
#include "kernels/common/index.h"

#include <cmath>

#include <gtest/gtest.h>

using namespace yoke::kernels;

TEST(Index, NegativeOnesCountFromTheEndWhereTheyMay)
{
    for (int64_t length : {1, 4, 7}) {
        for (int64_t i = -10; i < 10; ++i) {
            EXPECT_EQ(is_inside(i, length, true), i >= -length && i < length) << i;
            EXPECT_EQ(is_inside(i, length, false), i >= 0 && i < length) << i;
            if (!is_inside(i, length, true)) continue;
            EXPECT_EQ(resolved(i, length), (i + length) % length) << i;
        }
    }
    EXPECT_FALSE(is_inside(0, 0, true));
    EXPECT_FALSE(is_inside(INT64_MIN, 5, true));
    EXPECT_FALSE(is_inside(INT64_MAX, 5, true));
}

TEST(Index, MaskedFillReplacesWhereTheMaskIsTrue)
{
    const MaskedFill<float> fill{-INFINITY};
    EXPECT_EQ(fill(3.0f, false), 3.0f);
    EXPECT_EQ(fill(3.0f, true), -INFINITY);
    EXPECT_TRUE(std::isnan(fill(NAN, false)));
}

TEST(Index, NanIsNotZeroAndMinusZeroIs)
{
    EXPECT_TRUE(is_nonzero(NAN));
    EXPECT_FALSE(is_nonzero(-0.0));
    EXPECT_TRUE(is_nonzero(f16{0x0001}));
    EXPECT_FALSE(is_nonzero(bf16{0x8000}));
    EXPECT_TRUE(is_nonzero((int8_t)-1));
    EXPECT_FALSE(is_nonzero(false));
}

TEST(Index, TrianglesKeepWhatIsOnTheirSideOfTheDiagonal)
{
    for (int64_t columns : {0, 1, 5}) {
        for (int64_t diagonal = -7; diagonal <= 7; ++diagonal) {
            for (int64_t row = 0; row < 6; ++row) {
                const Kept lower = LowerTriangle()(row, columns, diagonal);
                const Kept upper = UpperTriangle()(row, columns, diagonal);
                for (int64_t column = 0; column < columns; ++column) {
                    EXPECT_EQ(column >= lower.first && column < lower.last,
                              column <= row + diagonal);
                    EXPECT_EQ(column >= upper.first && column < upper.last,
                              column >= row + diagonal);
                }
                EXPECT_TRUE(lower.first >= 0 && lower.first <= lower.last && lower.last <= columns);
                EXPECT_TRUE(upper.first >= 0 && upper.first <= upper.last && upper.last <= columns);
            }
        }
    }
}
