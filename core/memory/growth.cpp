#include "core/memory/growth.h"

#include "core/device/free_memory.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/graph_pool.h"
#include "core/memory/poison.h"

#include <algorithm>
#include <bit>

namespace yoke {

namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
// Chunk's part of its arena's memory, and the upper bound: large chunks cost fewer calls, small chunks find a place.
constexpr uint64_t kChunkPart = 64, kMostChunk = BackendMemory::kMostChunk;
// Sizes of the first range; each next range is twice as long.
constexpr uint64_t kFirstSmallRange = 64 * kMiB, kFirstLargeRange = 1024 * kMiB;
constexpr uint64_t kSmallSegment = 2 * kMiB, kLargeSegment = 20 * kMiB;

uint64_t round_up(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

void *pointer(uint64_t address)
{
    return reinterpret_cast<void *>(address);
}

}  // namespace

Growth::~Growth()
{
    chunks_.destroy_spare();
}

Arena &Growth::add(std::unique_ptr<Arena> &arena)
{
    arenas_.push_back(std::move(arena));
    arenas_.back()->id = ++last_id_;
    return *arenas_.back();
}

// Returns whether memory comes as chunks mapped to ranges of addresses. Returns false on the host if the address
// space is limited: such a limit counts ranges without memory too.
bool Growth::is_virtual()
{
    if (chunks_.unit() == 0 || !alloc_conf().expandable_segments) return false;
    return !device_.host || detail::process_limits().address_space_limit == UINT64_MAX;
}

Growth::Hold::Hold(Growth &growth) : growth_(growth)
{
    growth_.mutex_.lock();
}

Growth::Hold::~Hold()
{
    Losses losses;
    losses.swap(growth_.losses_);
    growth_.mutex_.unlock();
    losses.tell(growth_.device_);
}

// ---- plain memory --------------------------------------------------------------------------------

yoke_status Growth::grow_segment(Arena &arena, uint64_t size, Block **block)
{
    const uint64_t step = arena.is_small             ? kSmallSegment
                          : size < kLargeSegment / 2 ? kLargeSegment
                                                     : 0;
    uint64_t bytes = std::max(step, size);
    // Idle segments of as many bytes go back first, so that the reserved memory does not grow.
    uint64_t back = 0;
    for (const auto &each : arenas_) {
        each->admit_reached();
        if (back < bytes && !is_fixed(*each))
            back += give_back_segments(*each, bytes - back, each->settled_at());
    }
    if (backend_.exceeds_threshold(bytes)) give_back_idle();
    if (would_be_ended(device_, bytes)) {
        bytes = size;
        if (would_be_ended(device_, bytes)) return fail_ended();
    }
    void *data = nullptr;
    yoke_status status = backend_.obtain(pool_of(arena), bytes, &data);
    if (status == YOKE_E_OOM && bytes > size) {
        bytes = size;
        status = backend_.obtain(pool_of(arena), bytes, &data);
    }
    if (status != YOKE_OK) return status;
    const auto address = reinterpret_cast<uint64_t>(data);
    try {
        *block = arena.take_new(address, bytes, size);
    } catch (...) {
        backend_.release(pool_of(arena), address, bytes);
        throw;
    }
    return YOKE_OK;
}

// ---- virtual memory ------------------------------------------------------------------------------

yoke_status Growth::add_range(Arena &arena, uint64_t size, uint64_t unit)
{
    if (!arena.next_range) arena.next_range = arena.is_small ? kFirstSmallRange : kFirstLargeRange;
    uint64_t bytes = round_up(std::max(arena.next_range, size), unit);
    const uint64_t least = round_up(size, unit);
    void *start = nullptr;
    yoke_status status = device_.backend->vmm_reserve(device_.handle, bytes, &start);
    if (status == YOKE_E_OOM && bytes > least) {
        bytes = least;
        status = device_.backend->vmm_reserve(device_.handle, bytes, &start);
    }
    if (status != YOKE_OK) return status;
    try {
        arena.with_space(
            [&](Space &space) { space.add(reinterpret_cast<uint64_t>(start), bytes, true); });
    } catch (...) {
        losses_.note(device_.backend->vmm_release(device_.handle, start, bytes), "vmm_release",
                     bytes);
        throw;
    }
    arena.next_range = 2 * bytes;
    return YOKE_OK;
}

yoke_status Growth::fill(Arena &arena, uint64_t address, uint64_t bytes, uint64_t unit,
                         uint64_t *mapped)
{
    if (const uint64_t lacks = chunks_.lacking(bytes)) gather(arena, lacks);
    bool has_asked = false;
    while (*mapped < bytes) {
        const uint64_t left = bytes - *mapped;
        uint64_t got = 0;
        if (const yoke_status status = chunks_.map_spare(address + *mapped, left, &got))
            return status;
        *mapped += got;
        arena.mapped += got;
        if (got && arena.is_small) counters_.count_small(1, static_cast<int64_t>(got));
        if (got) continue;
        if (!has_asked) {
            if (backend_.exceeds_threshold(left)) give_back_idle();
            if (const yoke_status status = backend_.ask(left)) return status;
        }
        has_asked = true;
        const uint64_t part = std::bit_floor(std::max<uint64_t>(arena.mapped / kChunkPart, 1));
        if (const yoke_status status =
                chunks_.create(std::min({round_up(part, unit), round_up(kMostChunk, unit), left})))
            return status;
    }
    return YOKE_OK;
}

yoke_status Growth::grow_range(Arena &arena, uint64_t size, uint64_t unit, Block **block)
{
    const auto begin = [&] {
        return arena.with_space([&](Space &space) {
            if (!space.reserve()) throw std::bad_alloc();
            return space.begin_growth(size, unit);
        });
    };
    Space::Growth plan = begin();
    if (!plan.gap) {
        if (const yoke_status status = add_range(arena, size, unit)) return status;
        plan = begin();
    }
    if (!plan.gap) return set_backend_error(YOKE_E_INTERNAL, 0, "a new range does not fit");
    uint64_t mapped = 0;
    const auto end = [&] {
        return arena.with_space([&](Space &space) {
            Block *const grown = space.end_growth(plan, mapped, size);
            if (grown) grown->arena = &arena;
            return grown;
        });
    };
    yoke_status status = YOKE_OK;
    try {
        status = fill(arena, plan.gap->address, plan.gap->size, unit, &mapped);
    } catch (...) {
        end();
        throw;
    }
    *block = end();
    return status;
}

yoke_status Growth::grow(Arena &arena, uint64_t size, Block **block)
{
    // Another thread may have grown it, or given a block, since the caller looked.
    if ((*block = arena.take_any(size))) return YOKE_OK;
    yoke_status status = YOKE_E_OOM;
    const bool is_mapped = is_virtual();
    if (is_mapped) status = grow_range(arena, size, chunks_.unit(), block);
    // If there are no addresses or no chunks, there may be plain memory.
    if (status == YOKE_E_OOM || status == YOKE_E_UNSUPPORTED) {
        if (is_mapped && device_.host) return status;
        status = grow_segment(arena, size, block);
    }
    return status;
}

// Returns whether the arena belongs to a living graph. Such an arena keeps its chunks, since launches name the
// addresses.
bool Growth::is_fixed(const Arena &arena) const noexcept
{
    return arena.pool.present() && !arena.pool->is_gone();
}

void Growth::gather(Arena &grower, uint64_t most)
{
    const uint64_t unit = chunks_.unit();
    // Memory of ended graphs serves no other caller. The grower's own memory comes last, since it may serve the
    // grower's next request in place.
    const auto rank = [&](const std::unique_ptr<Arena> &arena) {
        return arena.get() == &grower ? 2 : arena->pool.present() ? 0 : 1;
    };
    for (int wanted = 0; wanted < 3; ++wanted)
        for (const auto &arena : arenas_) {
            if (most < unit) return;
            if (rank(arena) != wanted || is_fixed(*arena)) continue;
            arena->admit_reached();
            if (arena->with_space([](Space &space) { return space.free().bytes(); }) < unit)
                continue;
            const std::vector<Block *> cut =
                arena->cut_chunks(chunks_, arena->settled_at(), most, unit);
            if (!cut.empty() && arena->lane != grower.lane) counters_.count(MemoryEvent::kSteal);
            for (const Block *block : cut) most -= block->size;
            unmap(*arena, cut);
        }
}

void Growth::unmap(Arena &arena, const std::vector<Block *> &cut) noexcept
{
    for (Block *block : cut)
        if (chunks_.unmap(block->address)) {
            arena.mapped -= block->size;
            if (arena.is_small) counters_.count_small(-1, -static_cast<int64_t>(block->size));
            arena.make_hole(block);
        } else {
            arena.give(block);
        }
}

// ---- idle memory ---------------------------------------------------------------------------------

uint64_t Growth::give_back_segments(Arena &arena, uint64_t wanted, uint64_t settled)
{
    uint64_t bytes = 0;
    for (const Arena::Segment &each : arena.cut_segments(settled, wanted)) {
        bytes += each.bytes;
        backend_.release(pool_of(arena), each.address, each.bytes);
    }
    arena.mapped -= bytes;
    return bytes;
}

void Growth::give_back_idle(Arena &arena) noexcept
{
    if (is_fixed(arena)) return;
    try {
        const uint64_t settled = arena.settled_at();
        give_back_segments(arena, Arena::kAll, settled);
        if (const uint64_t unit = chunks_.unit())
            unmap(arena, arena.cut_chunks(chunks_, settled, Arena::kAll, unit));
    } catch (const std::bad_alloc &) {
        return;  // the memory stays
    }
}

void Growth::retire_gone() noexcept
{
    for (const auto &arena : arenas_) {
        if (!arena->pool.present() || is_fixed(*arena)) continue;
        give_back_idle(*arena);
    }
}

bool Growth::is_ended(const Arena &arena) const noexcept
{
    return arena.pool.present() && !is_fixed(arena) && arena.mapped == 0;
}

std::vector<std::unique_ptr<Arena>> Growth::take_ended() noexcept
{
    std::vector<std::unique_ptr<Arena>> ended;
    try {
        ended.reserve(arenas_.size());
    } catch (const std::bad_alloc &) {
        return ended;
    }
    for (auto &arena : arenas_)
        if (is_ended(*arena)) ended.push_back(std::move(arena));
    std::erase(arenas_, nullptr);
    for (const auto &arena : ended)
        for (const auto &extent : arena->space_of_ended().extents()) {
            void *start = pointer(extent->address);
            unpoison(device_, start, extent->bytes);
            losses_.note(device_.backend->vmm_release(device_.handle, start, extent->bytes),
                         "vmm_release", extent->bytes);
        }
    return ended;
}

void Growth::give_back_idle() noexcept
{
    for (const auto &arena : arenas_) {
        arena->admit_reached();
        give_back_idle(*arena);
    }
    chunks_.destroy_spare();
}

// Asks the fences, instead of ordering the stream behind them, for a graph and on the host device. A graph's stream
// waits for no work from outside the graph. On the host device, a wait would block the calling thread.
Block *Growth::take_used(Arena &arena, uint64_t size)
{
    const bool asks = arena.pool.present() || device_.host || alloc_conf().ask_fences;
    return (asks ? arena.admit_reached() : arena.admit_all()) ? arena.take(size) : nullptr;
}

Block *Growth::take_reached(Arena &arena, uint64_t size)
{
    arena.admit_reached();
    return arena.take_any(size);
}

Guards Growth::foreign_fences() const
{
    Guards all;
    for (const auto &arena : arenas_) {
        const Guards fences = arena->foreign_fences();
        all.insert(all.end(), fences.begin(), fences.end());
    }
    return all;
}

Block *Growth::take_known(Arena &arena, uint64_t size)
{
    if (arena.pool.present() || device_.host) return nullptr;
    for (const auto &each : arenas_) {
        if (each->lane == arena.lane || each->pool.present()) continue;
        const uint64_t fence = known_behind(device_, arena.lane, each->lane);
        Block *const block = fence ? each->take_freed_before(size, fence) : nullptr;
        if (!block) continue;
        counters_.count(MemoryEvent::kSteal);
        return block;
    }
    return nullptr;
}

Block *Growth::take_behind_waits(Arena &arena, uint64_t size)
{
    arena.admit_all();
    if (Block *block = arena.take_any(size)) return block;
    if (arena.pool.present())
        return nullptr;  // replays go on using the memory after it has returned to other callers
    for (const auto &each : arenas_) {
        if (each.get() == &arena || is_fixed(*each)) continue;
        Block *const block = each->take_any(size);
        if (!block) continue;
        try {
            each->order_behind(arena.lane);
        } catch (...) {
            each->give(block);
            throw;
        }
        if (each->lane != arena.lane) counters_.count(MemoryEvent::kSteal);
        return block;
    }
    return nullptr;
}

std::vector<Arena::Mark> Growth::mark_wait() noexcept
{
    std::vector<Arena::Mark> marks;
    try {
        marks.reserve(arenas_.size());
    } catch (const std::bad_alloc &) {
        return marks;
    }
    for (const auto &arena : arenas_) marks.push_back(arena->mark());
    return marks;
}

void Growth::note_waited(const std::vector<Arena::Mark> &marks) noexcept
{
    for (const Arena::Mark &mark : marks)
        for (const auto &arena : arenas_)
            if (arena->id == mark.arena) arena->note_waited(mark);
    for (const auto &arena : arenas_) arena->admit_reached();
}

}  // namespace yoke
