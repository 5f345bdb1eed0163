// What the compiler calls where an index is beyond an array of known length (-fsanitize=bounds): one more finding.
#include <cstdio>
#include <cstdlib>

#include "tests/emu/block.h"

namespace {

// As the compiler lays it out in front of what else it tells.
struct SourceLocation {
    const char *file;
    uint32_t line, column;
};

}  // namespace

extern "C" __attribute__((visibility("hidden"))) void __ubsan_handle_out_of_bounds_abort(
    const SourceLocation *location, uintptr_t index)
{
    static thread_local char place[300];
    snprintf(place, sizeof place, "%s:%u", location->file, location->line);
    if (yoke::emu::g_warp_lane)
        yoke::emu::report(place, "index %lld of an array that is shorter", (long long)index);
    fprintf(stderr, "emu: %s: index %lld of an array that is shorter\n", place, (long long)index);
    abort();
}
