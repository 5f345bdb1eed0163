// Catalog of cards: complete rows, and the right row for a driver's name.
#include "core/machine/catalog.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace yoke {
namespace {

TEST(Catalog, EveryRowIsWhole)
{
    EXPECT_GE(catalog().size(), 24u);
    std::set<std::string> names;
    for (const yoke_catalog_card &card : catalog()) {
        EXPECT_TRUE(names.insert(card.name).second) << card.name;
        EXPECT_GT(card.multiprocessors, 0) << card.name;
        EXPECT_GE(card.cc_major, 6) << card.name;
        EXPECT_GT(card.memory_bandwidth, 5e10) << card.name;
        EXPECT_LT(card.memory_bandwidth, 1e13) << card.name;
        EXPECT_GT(card.f32_rate, 1e12) << card.name;
        EXPECT_GT(card.power, 0) << card.name;
        EXPECT_GT(std::string(card.source).size(), 10u) << card.name;
        if (card.f16_rate > 0) {
            EXPECT_GE(card.f16_rate, card.f32_rate) << card.name;
        }
        if (card.f8_rate > 0) {
            EXPECT_GE(card.cc_major * 10 + card.cc_minor, 89) << card.name;
        }
        if (card.bf16_rate > 0) {
            EXPECT_GE(card.cc_major, 8) << card.name;
        }
        const int found = find_model(card.match, card.memory);
        ASSERT_GE(found, 0) << card.name;
        EXPECT_STREQ(catalog()[static_cast<size_t>(found)].name, card.name);
    }
}

TEST(Catalog, ModelsAreFoundByTheDriversNames)
{
    const auto name = [](const char *driver, int64_t mib) {
        const int found = find_model(driver, mib << 20);
        return found < 0 ? "" : catalog()[static_cast<size_t>(found)].name;
    };
    EXPECT_STREQ(name("NVIDIA H200", 143771), "H200 SXM");
    EXPECT_STREQ(name("NVIDIA H200 NVL", 143771), "H200 NVL");
    EXPECT_STREQ(name("NVIDIA H100 80GB HBM3", 81559), "H100 SXM");
    EXPECT_STREQ(name("NVIDIA A100-SXM4-40GB", 40960), "A100 SXM 40GB");
    EXPECT_STREQ(name("NVIDIA A100 80GB PCIe", 81920), "A100 PCIe 80GB");
    EXPECT_STREQ(name("Tesla T4", 15360), "T4");
    EXPECT_STREQ(name("NVIDIA L4", 23034), "L4");
    EXPECT_STREQ(name("NVIDIA L40S", 46068), "L40S");
    EXPECT_STREQ(name("NVIDIA A10", 23028), "A10");
    EXPECT_STREQ(name("NVIDIA GB10", 122502), "GB10");
    EXPECT_STREQ(name("NVIDIA Thor", 125772), "Jetson T5000");
    EXPECT_STREQ(name("NVIDIA Thor", 62000), "");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 3080", 10240), "RTX 3080");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 3080", 12288), "");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 3080 Ti", 12288), "");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4090 Laptop GPU", 16376), "");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4080 SUPER", 16376), "");
    EXPECT_STREQ(name("XL4", 23034), "");
    EXPECT_STREQ(name("Orin", 62841), "Jetson AGX Orin 64GB");
    EXPECT_STREQ(name("Orin", 7620), "");
    EXPECT_STREQ(name("NVIDIA Jetson AGX Orin Developer Kit", 62841),
                 "Jetson AGX Orin Developer Kit");
    EXPECT_STREQ(name("NVIDIA Jetson Orin Nano Developer Kit", 7620),
                 "Jetson Orin Nano Developer Kit");
    EXPECT_STREQ(name("NVIDIA H20", 97871), "H20");
    EXPECT_STREQ(name("NVIDIA H800", 81559), "H800 SXM");
    EXPECT_STREQ(name("NVIDIA A800-SXM4-80GB", 81920), "A800 SXM 80GB");
    EXPECT_STREQ(name("NVIDIA A800 80GB PCIe", 81920), "A800 PCIe 80GB");
    EXPECT_STREQ(name("NVIDIA L20", 46068), "L20");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4090 D", 24564), "RTX 4090 D");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4070", 12282), "RTX 4070");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4060", 8188), "RTX 4060");
    EXPECT_STREQ(name("NVIDIA GeForce RTX 4060 Ti", 8188), "");
    EXPECT_STREQ(name("", 0), "");
}

TEST(Catalog, MemoryIsWhatTheDriverReports)
{
    const auto mib = [](const char *model) {
        for (const yoke_catalog_card &card : catalog())
            if (std::string_view(card.name) == model) return card.memory >> 20;
        return int64_t{-1};
    };
    EXPECT_EQ(mib("H200 SXM"), 143771);
    EXPECT_EQ(mib("H100 SXM"), 81559);
    EXPECT_EQ(mib("A100 SXM 80GB"), 81920);
    EXPECT_EQ(mib("T4"), 15360);
    EXPECT_EQ(mib("RTX 4090"), 24564);
}

}  // namespace
}  // namespace yoke
