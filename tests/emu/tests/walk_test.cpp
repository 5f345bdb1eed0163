// Divisions by multiplication: beside the processor's own, at the ends of their ranges and for drawn numbers.
#include "kernels/cuda/ops/walk.cuh"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace cuda = yoke::cuda;

namespace {

// The greatest numbers of narrow divisions, and nearly the greatest of all.
constexpr int64_t kNarrow = INT32_MAX - 1, kWide = INT64_MAX - 2;

// Returns numbers from 0 to `most`: around powers of two, around multiples of d, and drawn.
std::vector<int64_t> numbers(int64_t d, int64_t most, std::mt19937_64 &random)
{
    std::vector<int64_t> all = {0, most};
    const auto add = [&](int64_t n) {
        for (int64_t i = n - 1; i <= n + 1; i++)
            if (i >= 0 && i <= most) all.push_back(i);
    };
    for (int bit = 0; bit < 62; bit++) add((int64_t)1 << bit);
    for (int k = 0; k < 20; k++) {
        const auto drawn = (int64_t)(random() >> 1) >> (random() % 63);
        add(drawn);
        if (d <= most && drawn / d > 0) add(drawn / d * d);
        add(most / d * d);
    }
    return all;
}

void expect_quotients(int64_t d, int64_t most, std::mt19937_64 &random)
{
    const cuda::Split split(d, most + 1);
    for (const int64_t n : numbers(d, most, random))
        ASSERT_EQ(split.quotient(n), n / d) << n << " by " << d;
}

TEST(Walk, QuotientsAreThoseOfADivision)
{
    std::mt19937_64 random(7);
    for (const int64_t d : numbers(1, kNarrow, random))
        if (d > 0) expect_quotients(d, kNarrow, random);
    for (const int64_t d : numbers(1, kWide, random))
        if (d > 0) expect_quotients(d, kWide, random);
}

TEST(Walk, FindsPlacesBeyondTheNarrowNumbers)
{
    yoke::kernels::Loop<1> loop;
    loop.ndim = 0;
    loop.numel = 1;
    loop.data[0] = nullptr;
    const int64_t lengths[] = {1000003, 7, 1 << 20, 3};
    int64_t last = 0;
    for (int axis = 0; axis < 4; axis++) {
        cuda::add_axis<1>(loop, lengths[axis], {1 + axis});
        last += (lengths[axis] - 1) * (1 + axis);
    }
    const cuda::Walk<1> walk(loop);
    const auto place = [&](int64_t n) { return (int64_t)(uintptr_t)walk.at(n).data[0]; };
    ASSERT_FALSE(walk.narrow);
    EXPECT_EQ(place(walk.numel - 1), last);
    EXPECT_EQ(place(1000003 * 7), 3);
    EXPECT_EQ(place(1000003 * 7 * 5 + 1000003 * 2 + 9), 5 * 3 + 2 * 2 + 9);
}

}  // namespace
