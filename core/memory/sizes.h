// sizes.h: how requests are rounded.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace yoke {

inline constexpr uint64_t kSmallStep = 64;
inline constexpr uint64_t kMostStepped = 4096;            // multiples of kSmallStep up to here
inline constexpr uint64_t kMaxSmall = uint64_t{1} << 20;  // eight classes a power of two up to here
inline constexpr uint64_t kLargeStep = 4096;              // multiples of it beyond
inline constexpr uint64_t kMaxBlock = uint64_t{1} << 62;  // more than any machine has
inline constexpr int kSteppedClasses = kMostStepped / kSmallStep;
inline constexpr int kSmallClasses = kSteppedClasses + (20 - 12) * 8;

// Returns bytes as a multiple of `step`, a power of two, and beyond 4 KiB in eight classes for each power of two.
inline uint64_t rounded_to_class(uint64_t bytes, uint64_t step)
{
    if (bytes > kMostStepped) {
        const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power+1)
        step = std::max(step, uint64_t{1} << (power - 3));
    }
    return (bytes + step - 1) & ~(step - 1);
}

// Returns the size of the block that serves a request: at most an eighth more up to kMaxSmall, less than kLargeStep
// more beyond. `alignment` is the device's, a power of two. 0 < bytes <= kMaxBlock.
inline uint64_t rounded_size(uint64_t bytes, uint64_t alignment)
{
    const uint64_t step = std::max(bytes > kMaxSmall ? kLargeStep : kSmallStep, alignment);
    return bytes > kMaxSmall ? (bytes + step - 1) & ~(step - 1) : rounded_to_class(bytes, step);
}

// Returns the number of the class of a rounded size up to kMaxSmall.
inline int class_index(uint64_t size)
{
    if (size <= kMostStepped) return static_cast<int>((size - 1) / kSmallStep);
    const int power = std::bit_width(size - 1) - 1;
    const uint64_t eighth = ((size - 1) >> (power - 3)) & 7;
    return kSteppedClasses + (power - 12) * 8 + static_cast<int>(eighth);
}

// Returns the size of a class.
inline uint64_t index_size(int index)
{
    const auto i = static_cast<uint64_t>(index);
    if (index < kSteppedClasses) return (i + 1) * kSmallStep;
    const uint64_t power = 12 + (i - kSteppedClasses) / 8, eighth = (i - kSteppedClasses) % 8;
    return (uint64_t{1} << power) + ((eighth + 1) << (power - 3));
}

}  // namespace yoke
