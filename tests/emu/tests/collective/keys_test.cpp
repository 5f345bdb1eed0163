// Keys of floats: each number comes back as it was, in the order of numbers, and NaN wins.
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/common/extreme_key.h"
#include "kernels/common/numeric.h"
#include "ranks.h"

namespace yoke::test {

using kernels::bits_of_extreme_key;
using kernels::extreme_key;
using kernels::KeyFormat;

namespace {

template <class K, class Value>
void expect_each_pattern(K most, K quiet, const Value &value)
{
    for (const K nan : {K{0}, static_cast<K>(~K{0})}) {
        const KeyFormat<K> format{most, quiet, nan};
        for (unsigned bits = 0; bits <= static_cast<K>(~K{0}); ++bits) {
            const K key = extreme_key(static_cast<K>(bits), format);
            const K back = bits_of_extreme_key(key, format);
            if (std::isnan(value(static_cast<K>(bits)))) {
                EXPECT_EQ(key, nan);
                EXPECT_TRUE(std::isnan(value(back)));
            } else {
                EXPECT_NE(key, nan);
                EXPECT_EQ(back, static_cast<K>(bits));
            }
        }
    }
}

template <class K, class T>
void expect_order(K most, K quiet, const std::vector<T> &rising)
{
    const KeyFormat<K> format{most, quiet, static_cast<K>(~K{0})};
    K last = 0;
    for (const T x : rising) {
        K bits;
        memcpy(&bits, &x, sizeof bits);
        const K key = extreme_key(bits, format);
        EXPECT_LT(last, key) << x;
        EXPECT_EQ(bits_of_extreme_key(key, format), bits);
        last = key;
    }
}

}  // namespace

TEST(Keys, EachPatternOf16And8BitsComesBack)
{
    expect_each_pattern<uint16_t>(0x7c00, 0x7e00,
                                  [](uint16_t x) { return kernels::f16_to_f32(kernels::f16{x}); });
    expect_each_pattern<uint16_t>(
        0x7f80, 0x7fc0, [](uint16_t x) { return kernels::bf16_to_f32(kernels::bf16{x}); });
    expect_each_pattern<uint8_t>(
        0x7e, 0x7f, [](uint8_t x) { return kernels::small_to_f32(kernels::f8_e4m3{x}); });
    expect_each_pattern<uint8_t>(
        0x7c, 0x7e, [](uint8_t x) { return kernels::small_to_f32(kernels::f8_e5m2{x}); });
}

TEST(Keys, TheOrderIsThatOfTheNumbers)
{
    const double inf = HUGE_VAL;
    expect_order<uint32_t, float>(
        0x7f800000u, 0x7fc00000u,
        {-HUGE_VALF, -2e30f, -1, -1e-45f, -0.0f, 0, 1e-45f, 1e-20f, 1, 3e38f, HUGE_VALF});
    expect_order<uint64_t, double>(0x7ff0000000000000u, 0x7ff8000000000000u,
                                   {-inf, -1e300, -1, -5e-324, -0.0, 0, 5e-324, 1, 1e300, inf});
}

}  // namespace yoke::test
