// Devices for a module that was built for a list of architectures.
#include "kernels/cuda/host/archs.h"

#include <gtest/gtest.h>

namespace yoke::cuda {

TEST(Archs, MachineCodeServesItsMajorVersionFromItsMinorOn)
{
    EXPECT_TRUE(archs_serve("86-real", 8, 6, false));
    EXPECT_TRUE(archs_serve("86-real", 8, 9, false));
    EXPECT_FALSE(archs_serve("86-real", 8, 0, true));
    EXPECT_FALSE(archs_serve("86-real", 9, 0, true));
}

TEST(Archs, PtxServesLaterDevicesWhereTheDriverTakesIt)
{
    EXPECT_TRUE(archs_serve("90", 10, 0, true));
    EXPECT_FALSE(archs_serve("90", 10, 0, false));
    EXPECT_TRUE(archs_serve("90", 9, 0, false)) << "machine code needs no compiler in the driver";
    EXPECT_FALSE(archs_serve("90-virtual", 9, 0, false));
    EXPECT_TRUE(archs_serve("90-virtual", 9, 0, true));
    EXPECT_FALSE(archs_serve("90", 8, 9, true));
}

TEST(Archs, CodeForOneArchitectureOrFamilyServesNoOther)
{
    EXPECT_TRUE(archs_serve("90a", 9, 0, false));
    EXPECT_FALSE(archs_serve("90a", 10, 0, true));
    EXPECT_FALSE(archs_serve("100a", 10, 3, true));
    EXPECT_TRUE(archs_serve("100f", 10, 3, true));
    EXPECT_FALSE(archs_serve("100f", 12, 0, true));
}

TEST(Archs, AWordServesNobody)
{
    for (const char *list : {"native", "all", "OFF", "", ",", "90-rael", "0", "9", "-real"})
        EXPECT_FALSE(archs_serve(list, 9, 0, true)) << list;
    EXPECT_TRUE(archs_serve("native,90-real", 9, 0, false));
    EXPECT_FALSE(archs_serve("90a-virtual", 9, 0, false)) << "PTX needs a driver that compiles it";
}

TEST(Archs, AnyEntryOfTheListWillDo)
{
    EXPECT_TRUE(archs_serve("75-real,80-real,120", 8, 6, false));
    EXPECT_TRUE(archs_serve("75-real,80-real,120", 12, 1, false));
    EXPECT_FALSE(archs_serve("75-real,80-real,120", 9, 0, true));
}

TEST(Archs, TheNearestMachineCodeRunsElseTheLatestPtx)
{
    EXPECT_EQ(arch_of_code("75,80-real,86-real,120", 8, 9, true), 86);
    EXPECT_EQ(arch_of_code("86-real,80-real", 8, 0, true), 80);
    EXPECT_EQ(arch_of_code("75,80-real", 9, 0, true), 75) << "machine code of 8.0 is none for 9.0";
    EXPECT_EQ(arch_of_code("80-virtual,75,90", 10, 0, true), 90);
    EXPECT_EQ(arch_of_code("70-real,80-virtual", 7, 5, true), 70);
    EXPECT_EQ(arch_of_code("80", 7, 5, true), 0);
}

}  // namespace yoke::cuda
