// program.h: a program of requests, frees, work, captures, settings and failures on a hollow device, made from bytes.
//
// After each step, the allocator's state is checked and its figures are compared with a slow model. Vector clocks
// find memory used before the last use is ordered ahead. After a refused request, a search shows that no block could
// have served. A broken promise is a failure of GoogleTest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace yoke::fuzz {

// Number of occurrences, by name.
using Tally = std::map<std::string, uint64_t>;

void run_program(const uint8_t *bytes, size_t size, Tally &tally);

}  // namespace yoke::fuzz
