// Shared memory of a block, and who touches what of it between barriers.
#include "tests/emu/block.h"

namespace yoke::emu {

SharedArray shared_array(const char *place, const void *tag, size_t size, size_t count)
{
    if (!tag) count = g_block->dynamic_bytes / size;
    Array &array = g_block->arrays[tag];
    if (array.bytes.empty()) {
        array.bytes.assign(tag ? size * count : g_block->dynamic_bytes, (char)0xff);
        array.unit = size;
        array.touches.resize(count);
    }
    if (array.unit != size)
        report(place, "an array of elements of %zu bytes is one of %zu elsewhere", size,
               array.unit);
    return {array.bytes.data(), count, &array};
}

[[noreturn]] static void tell_race(const char *place, int other, const char *did, bool writes,
                                   size_t i)
{
    report(place, "threads %d (%s) and %d (%s) meet at element %zu with no barrier between", other,
           did, g_warp_lane->thread.number, writes ? "writing" : "reading", i);
}

void note_access(const char *place, const SharedArray &array, size_t i, bool writes)
{
    Touches &past = array.array->touches[i];
    const int me = g_warp_lane->thread.number, warp = warp_of(*g_warp_lane);
    const unsigned warp_time = g_block->warp_times[(size_t)warp], my_warp = 1u << warp,
                   my_warp_lane = 1u << me % kWarp;
    if (past.block_time != g_block->time) {
        past = Touches();
        past.block_time = g_block->time;
    }
    if (past.writer >= 0 && past.writer != me &&
        (past.writer / kWarp != warp || past.writer_time == warp_time))
        tell_race(place, past.writer, "writing", writes, i);
    const bool now =
        past.reader >= 0 && past.reader / kWarp == warp && past.reader_time == warp_time;
    if (!writes) {
        past.reading_warps |= my_warp;
        past.reading_warp_lanes = (now ? past.reading_warp_lanes : 0) | my_warp_lane;
        past.reader = me;
        past.reader_time = warp_time;
        return;
    }
    if (past.reading_warps & ~my_warp)
        tell_race(place, __builtin_ctz(past.reading_warps & ~my_warp) * kWarp,
                  "a warp that is reading", true, i);
    if (now && (past.reading_warp_lanes & ~my_warp_lane))
        tell_race(place, warp * kWarp + __builtin_ctz(past.reading_warp_lanes & ~my_warp_lane),
                  "reading", true, i);
    past.reading_warps = past.reading_warp_lanes = 0;
    past.reader = -1;
    past.writer = me;
    past.writer_time = warp_time;
}

}  // namespace yoke::emu
