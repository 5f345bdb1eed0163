// Numbers of the kernel's files, read alike whatever locale the host has set.
#include "core/machine/files.h"
#include "core/machine/network.h"
#include "core/machine/sysfs.h"
#include "tests/core/tree.h"

#include <clocale>

namespace yoke {
namespace {

TEST(Number, IsWhatATextStartsWith)
{
    std::string_view rest;
    EXPECT_EQ(number_of("32.0 GT/s PCIe", &rest), 32);
    EXPECT_EQ(rest, " GT/s PCIe");
    EXPECT_EQ(number_of(" 0.5"), 0.5);
    EXPECT_EQ(number_of("-2e3"), -2000);
    EXPECT_EQ(number_of("65536k", &rest), 65536);
    EXPECT_EQ(rest, "k");
    EXPECT_EQ(number_of("Unknown"), 0);
    EXPECT_EQ(number_of("", &rest), 0);
    EXPECT_EQ(rest, "");
}

// Fixture with the C library in a locale that writes a comma for the point. The test makes the locale, because few
// machines have it.
class CommaLocale : public test::Tree {
protected:
    void SetUp() override
    {
        Tree::SetUp();
        const std::string folder = root.path("/de_DE.utf8");
        const std::string make =
            "localedef --no-archive -i de_DE -f UTF-8 " + folder + " >/dev/null 2>&1";
        static_cast<void>(!system(make.c_str()));
        setenv("LOCPATH", root.prefix.c_str(), 1);
        if (!setlocale(LC_NUMERIC, "de_DE.utf8")) GTEST_SKIP() << "no locale with a comma";
        ASSERT_EQ(atof("0.5"), 0);
    }
    void TearDown() override
    {
        setlocale(LC_NUMERIC, "C");
        unsetenv("LOCPATH");
        Tree::TearDown();
    }
};

TEST_F(CommaLocale, SpeedsAndRatesKeepTheirFractions)
{
    EXPECT_EQ(pcie_generation("2.5 GT/s PCIe"), 1);
    const std::string place = "/sys/devices/pci0000:60/0000:61:00.0/infiniband/mlx5_0";
    write(place + "/ports/1/rate", "2.5 Gb/sec (1X SDR)\n");
    link("/sys/class/infiniband/mlx5_0", "../../devices/pci0000:60/0000:61:00.0/infiniband/mlx5_0");
    EXPECT_EQ(read_networks(root).at(0).info.rate, 2.5e9);
}

}  // namespace
}  // namespace yoke
