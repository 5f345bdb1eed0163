// Handler for an index beyond an array of known length (-fsanitize=bounds), which the compiler calls: one more
// finding.
#include <cstdio>
#include <cstdlib>

#include "tests/emu/block.h"

namespace {

// First part of the compiler's data about an index.
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
