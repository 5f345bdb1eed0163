// draw.h: whole numbers drawn at random.
#pragma once

#include <cstdint>
#include <random>

namespace yoke::test {

using Random = std::mt19937;

// Returns a number in [low, high].
inline int64_t draw(Random &random, int64_t low, int64_t high)
{
    return std::uniform_int_distribution<int64_t>(low, high)(random);
}

}  // namespace yoke::test
