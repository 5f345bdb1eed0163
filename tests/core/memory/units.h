// units.h: sizes for tests of the allocator.
#pragma once

#include <cstdint>

namespace yoke::test {

inline constexpr uint64_t kKiB = uint64_t{1} << 10, kMiB = uint64_t{1} << 20,
                          kGiB = uint64_t{1} << 30;

}  // namespace yoke::test
