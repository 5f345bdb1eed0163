// program.h: a program of requests, frees, work, captures, settings and failures on a hollow device, made from bytes.
//
// After each step the allocator's state is walked and its figures are compared with a slow model. Memory that is used
// before its last use is ordered ahead is found by vector clocks. After a refused request a walk shows that nothing
// would have served. What does not hold is a failure of GoogleTest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace yoke::fuzz {

// How often something happened, by its name.
using Tally = std::map<std::string, uint64_t>;

void run_program(const uint8_t *bytes, size_t size, Tally &tally);

}  // namespace yoke::fuzz
