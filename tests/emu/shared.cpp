// Shared memory of a block, and its accesses between barriers.
#include "tests/emu/block.h"

namespace yoke::emu {

namespace {

constexpr size_t kMostShared = 48 * 1024, kAlignment = 16;

// Checks the total memory of the arrays in the block's kernel and of the launch.
void check_room(const char *place)
{
    size_t bytes = g_block->dynamic_bytes;
    for (const auto &[tag, array] : g_block->arrays)
        if (tag) bytes += (array.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
    if (bytes > kMostShared)
        report(
            place,
            "the block has %zu bytes of shared memory, %zu of them the launch's; %zu are allowed",
            bytes, g_block->dynamic_bytes, kMostShared);
}

[[noreturn]] void tell_race(const char *place, int other, const char *did, Access access, size_t i)
{
    static constexpr const char *kDoing[] = {"reading", "writing", "adding"};
    report(place, "threads %d (%s) and %d (%s) meet at element %zu with no barrier between", other,
           did, g_warp_lane->thread.number, kDoing[(int)access], i);
}

bool is_ordered(int warp_lane, unsigned time)
{
    return g_warp_lane->known[(size_t)warp_lane] >= time;
}

void note_visit(Visitors &visitors)
{
    const int warp = warp_of(*g_warp_lane), me = warp_lane_number();
    if (visitors.warp != warp) visitors.warp_lanes = 0;
    visitors.warp = warp;
    visitors.warps |= 1u << warp;
    visitors.warp_lanes |= 1u << me;
    visitors.times[(size_t)me] = g_warp_lane->known[(size_t)me];
}

void check_visits(const char *place, const Visitors &visitors, const char *did, Access access,
                  size_t i)
{
    const int warp = warp_of(*g_warp_lane);
    if (const unsigned others = visitors.warps & ~(1u << warp))
        tell_race(place, __builtin_ctz(others) * kWarp, did, access, i);
    if (!visitors.warps) return;
    for (int k = 0; k < kWarp; k++)
        if (k != warp_lane_number() && visitors.warp_lanes >> k & 1 &&
            !is_ordered(k, visitors.times[(size_t)k]))
            tell_race(place, warp * kWarp + k, did, access, i);
}

void forget(Visitors &visitors)
{
    visitors.warps = visitors.warp_lanes = 0;
    visitors.warp = -1;
}

}  // namespace

SharedArray shared_array(const char *place, const void *tag, size_t size, size_t count)
{
    if (!tag) count = g_block->dynamic_bytes / size;
    Array &array = g_block->arrays[tag];
    if (array.bytes.empty()) {
        array.bytes.assign(tag ? size * count : g_block->dynamic_bytes, (char)0xff);
        array.unit = size;
        array.touches.resize(count);
        check_room(place);
    }
    if (array.unit != size)
        report(place, "an array of elements of %zu bytes is one of %zu elsewhere", size,
               array.unit);
    return {array.bytes.data(), count, &array};
}

void note_access(const char *place, const SharedArray &array, size_t i, Access access)
{
    Touches &past = array.array->touches[i];
    const int me = g_warp_lane->thread.number;
    if (past.block_time != g_block->time) {
        past.block_time = g_block->time;
        past.writer = -1;
        forget(past.readers);
        forget(past.adders);
    }
    if (past.writer >= 0 && past.writer != me &&
        (past.writer / kWarp != me / kWarp || !is_ordered(past.writer % kWarp, past.writer_time)))
        tell_race(place, past.writer, "writing", access, i);
    if (access != Access::kAdd) check_visits(place, past.adders, "adding", access, i);
    if (access == Access::kRead) return note_visit(past.readers);
    check_visits(place, past.readers, "reading", access, i);
    forget(past.readers);
    if (access == Access::kAdd) return note_visit(past.adders);
    forget(past.adders);
    past.writer = me;
    past.writer_time = g_warp_lane->known[(size_t)warp_lane_number()];
}

}  // namespace yoke::emu
