// Driver version needed by a module, according to the module's toolkit.
#include "kernels/cuda/host/floors.h"

#include <gtest/gtest.h>

namespace yoke::cuda {

TEST(Floors, OfCuda12IsTheFirstThatTakesLongArguments)
{
    EXPECT_EQ(floor_of(12010).version, 12010);
    EXPECT_EQ(floor_of(12090).version, 12010);
    EXPECT_STREQ(floor_of(12090).release, "530");
}

TEST(Floors, OfLaterVersionsIsTheirFirst)
{
    EXPECT_EQ(floor_of(13010).version, 13000);
    EXPECT_STREQ(floor_of(13010).release, "580");
    EXPECT_EQ(floor_of(14020).version, 14000);
}

}  // namespace yoke::cuda
