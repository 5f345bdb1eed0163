#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/emu/block.h"

namespace yoke::emu {

constinit thread_local const Thread *g_thread = nullptr;
constinit thread_local const Grid *g_grid = nullptr;

constinit thread_local Block *g_block = nullptr;
constinit thread_local WarpLane *g_warp_lane = nullptr;

namespace {

thread_local std::vector<std::unique_ptr<Fiber>>
    g_spare;  // with their stacks, for the next threads

void enter(WarpLane &warp_lane)
{
    g_warp_lane = &warp_lane;
    g_thread = &warp_lane.thread;
}

void yield()
{
    Fiber *here = g_warp_lane->fiber;
    here->switch_to(g_block->scheduler);
}

[[noreturn]] void end_thread()
{
    g_warp_lane->state = State::kEnded;
    g_warp_lane->fiber->end_into(g_block->scheduler);
    __builtin_unreachable();
}

// Runs threads on this fiber. A thread that never waits leaves its fiber to the next thread of its warp.
void run_threads()
{
    for (;;) {
        g_warp_lane->fresh = false;
        (*g_block->kernel)();
        if (g_block->pass.empty()) end_thread();
        WarpLane &next = g_block->warp_lanes[g_block->pass.back()];
        g_block->pass.pop_back();
        next.fiber = std::exchange(g_warp_lane->fiber, nullptr);
        g_warp_lane->state = State::kEnded;
        enter(next);
    }
}

Fiber *take_fiber()
{
    if (g_spare.empty()) return new Fiber();
    Fiber *fiber = g_spare.back().release();
    g_spare.pop_back();
    return fiber;
}

// Returns the warp lanes of a warp as [first, last).
std::pair<size_t, size_t> warp_lanes_of(const Block &block, size_t warp)
{
    return {warp * kWarp, std::min(block.warp_lanes.size(), (warp + 1) * kWarp)};
}

void finding(const char *place, const char *format, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    const uint3 b = g_block ? g_block->grid.block_index : uint3{0, 0, 0};
    fprintf(stderr, "emu: %s: %s: %s (block %u,%u,%u thread %d)\n", g_block ? g_block->name : "?",
            place, text, b.x, b.y, b.z, g_warp_lane ? g_warp_lane->thread.number : -1);
    if (g_block) g_block->failed = true;
}

void note(const char *place, const char *format, ...) __attribute__((format(printf, 2, 3)));
void note(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    finding(place, format, args);
    va_end(args);
}

// Runs a warp lane until the lane waits or ends. Lanes that have not begun may run after it on the same fiber.
void resume(Block &block, WarpLane &warp_lane)
{
    enter(warp_lane);
    if (!warp_lane.fiber) {
        warp_lane.fiber = take_fiber();
        warp_lane.fiber->start(run_threads);
    }
    block.scheduler.switch_to(*warp_lane.fiber);
    if (g_warp_lane->state == State::kEnded)
        g_spare.emplace_back(std::exchange(g_warp_lane->fiber, nullptr));
}

// Merges the knowledge of the warp lanes in a mask, which have met at a barrier. Other lanes learn no part of it.
void order(Block &block, size_t first, size_t last, unsigned mask)
{
    Clock all{};
    const auto each = [&](const auto &visit) {
        for (size_t k = first; k < last; k++)
            if (mask >> (k - first) & 1) visit(block.warp_lanes[k].known, k - first);
    };
    each([&](const Clock &known, size_t) {
        for (size_t i = 0; i < known.size(); i++) all[i] = std::max(all[i], known[i]);
    });
    each([&](Clock &known, size_t me) {
        known = all;
        known[me]++;
    });
}

// Frees the warp lanes of a warp when their operation is complete: all lanes of the mask have come, for a common
// purpose.
bool complete_meeting(Block &block, size_t warp)
{
    const auto [first, last] = warp_lanes_of(block, warp);
    bool any = false;
    for (size_t i = first; i < last; i++) {
        WarpLane &warp_lane = block.warp_lanes[i];
        if (warp_lane.state != State::kInWarp) continue;
        const unsigned mask = warp_lane.brought.mask;
        bool all = true;
        unsigned votes = 0;
        for (size_t k = first; k < last && all; k++) {
            if (!(mask >> (k - first) & 1)) continue;
            const WarpLane &other = block.warp_lanes[k];
            all = other.state == State::kInWarp && other.brought.mask == mask &&
                  other.brought.purpose == warp_lane.brought.purpose &&
                  other.brought.bytes == warp_lane.brought.bytes;
            if (all && other.brought.vote) votes |= 1u << (k - first);
        }
        if (!all) continue;
        for (size_t k = first; k < last; k++) {
            if (!(mask >> (k - first) & 1)) continue;
            WarpLane &other = block.warp_lanes[k];
            other.state = State::kReady;
            other.votes = votes;
            block.meetings[warp][k - first] = other.brought;
        }
        if (warp_lane.brought.purpose == Purpose::kBarrier) order(block, first, last, mask);
        any = true;
    }
    return any;
}

// Completes a barrier if all threads that have not ended wait at a barrier.
bool complete_barrier(Block &block)
{
    const char *place = nullptr;
    for (WarpLane &warp_lane : block.warp_lanes) {
        if (warp_lane.state == State::kEnded) continue;
        if (warp_lane.state != State::kAtBarrier) return false;
        if (place && strcmp(place, warp_lane.barrier) != 0) {
            enter(warp_lane);
            note(warp_lane.barrier, "waits here while others of the block wait at %s", place);
        }
        place = warp_lane.barrier;
    }
    if (!place) return false;
    block.any_vote = false;
    for (WarpLane &warp_lane : block.warp_lanes) {
        if (warp_lane.state != State::kAtBarrier) continue;
        block.any_vote |= warp_lane.brought.vote;
        warp_lane.state = State::kReady;
    }
    block.time++;
    return true;
}

void tell_deadlock(Block &block)
{
    for (WarpLane &warp_lane : block.warp_lanes) {
        if (warp_lane.state == State::kEnded) continue;
        enter(warp_lane);
        note(warp_lane.state == State::kAtBarrier ? warp_lane.barrier : warp_lane.brought.place,
             "waits for threads that never come here");
        return;
    }
}

// Runs every ready warp lane of a warp, in a random order. Returns true if any lane ran.
bool run_warp(Block &block, size_t warp, bool &left)
{
    const auto [first, last] = warp_lanes_of(block, warp);
    const size_t count = last - first, offset = block.next_random() % count;
    bool ran = false;
    block.pass.clear();
    for (size_t i = 0; i < count; i++) {
        WarpLane &warp_lane = block.warp_lanes[first + (i + offset) % count];
        left |= warp_lane.state != State::kEnded;
        if (warp_lane.state != State::kReady || block.failed) continue;
        ran = true;
        if (warp_lane.fresh)
            block.pass.push_back((size_t)warp_lane.thread.number);
        else
            resume(block, warp_lane);
    }
    while (!block.pass.empty() && !block.failed) {
        WarpLane &warp_lane = block.warp_lanes[block.pass.back()];
        block.pass.pop_back();
        resume(block, warp_lane);
    }
    return complete_meeting(block, warp) || ran;
}

void run_block(Block &block)
{
    std::vector<size_t> warps(block.meetings.size());
    std::iota(warps.begin(), warps.end(), size_t{0});
    for (;;) {
        bool ran = false, left = false;
        block.shuffle(warps);
        for (size_t warp : warps) ran |= run_warp(block, warp, left);
        if (!left || block.failed) break;
        if (ran || complete_barrier(block)) continue;
        tell_deadlock(block);
        break;
    }
    for (WarpLane &warp_lane : block.warp_lanes) {  // lanes of an abandoned block
        delete warp_lane.fiber;
        warp_lane.fiber = nullptr;
    }
}

uint64_t seed()
{
    const char *text = getenv("YOKE_EMU_SEED");
    const uint64_t given = text ? strtoull(text, nullptr, 10) : 0;
    return (given + 1) * 0x9e3779b97f4a7c15ull;
}

void prepare(Block &block, uint3 index, dim3 grid, dim3 size)
{
    const size_t count = (size_t)size.x * size.y * size.z;
    block.grid = {index, size, grid};
    block.warp_lanes.resize(count);
    block.meetings.resize((count + kWarp - 1) / kWarp, std::vector<Meeting>(kWarp));
    block.arrays.clear();
    block.time = 0;
    uint3 at{0, 0, 0};
    for (size_t i = 0; i < count; i++) {
        block.warp_lanes[i].begin({at, (int)i});
        if (++at.x < size.x) continue;
        at.x = 0;
        if (++at.y < size.y) continue;
        at.y = 0;
        at.z++;
    }
}

}  // namespace

void report(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    finding(place, format, args);
    va_end(args);
    end_thread();
}

bool run(const char *name, dim3 grid, dim3 size, size_t shared_bytes,
         const std::function<void()> &kernel, Watcher *watcher, bool backwards)
{
    Block block;
    block.kernel = &kernel;
    block.name = name;
    block.dynamic_bytes = shared_bytes;
    block.random = seed();
    std::vector<size_t> order((size_t)grid.x * grid.y * grid.z);
    std::iota(order.begin(), order.end(), size_t{0});
    block.shuffle(order);
    if (backwards) std::reverse(order.begin(), order.end());
    g_block = &block;
    g_grid = &block.grid;
    for (size_t i : order) {
        const uint3 index{(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                          (unsigned)(i / grid.x / grid.y)};
        prepare(block, index, grid, size);
        run_block(block);
        if (watcher) watcher->end_block((int)i);
        if (block.failed) break;
    }
    g_block = nullptr;
    g_warp_lane = nullptr;
    return !block.failed;
}

void block_barrier(const char *place)
{
    (void)block_vote(place, false);
}

bool block_vote(const char *place, bool vote)
{
    g_warp_lane->barrier = place;
    g_warp_lane->brought.vote = vote;
    g_warp_lane->state = State::kAtBarrier;
    yield();
    return g_block->any_vote;
}

static void meet(const char *place, unsigned mask, Purpose purpose, const void *mine, size_t bytes,
                 bool vote)
{
    if (!(mask >> warp_lane_number() & 1))
        report(place, "the mask %08x leaves out the caller, warp lane %d", mask,
               warp_lane_number());
    // Warp lanes that the block does not have are not waited for.
    const auto [first, last] = warp_lanes_of(*g_block, (size_t)warp_of(*g_warp_lane));
    if (last - first < kWarp) mask &= (1u << (last - first)) - 1;
    Meeting &brought = g_warp_lane->brought;
    brought.place = place;
    brought.mask = mask;
    brought.purpose = purpose;
    brought.vote = vote;
    brought.bytes = bytes;
    if (bytes) memcpy(brought.value, mine, bytes);
    g_warp_lane->state = State::kInWarp;
    yield();
}

void warp_barrier(const char *place, unsigned mask)
{
    meet(place, mask, Purpose::kBarrier, nullptr, 0, false);
}

void exchange(const char *place, unsigned mask, const void *mine, void *theirs, size_t bytes,
              int warp_lane)
{
    meet(place, mask, Purpose::kShuffle, mine, bytes, false);
    const auto [first, last] = warp_lanes_of(*g_block, (size_t)warp_of(*g_warp_lane));
    if (warp_lane < 0 || warp_lane >= kWarp) report(place, "there is no warp lane %d", warp_lane);
    if (first + (size_t)warp_lane >= last || !(mask >> warp_lane & 1)) {
        memset(theirs, 0xff, bytes);  // CUDA leaves it undefined: NaN
        return;
    }
    memcpy(theirs, g_block->meetings[(size_t)warp_of(*g_warp_lane)][(size_t)warp_lane].value,
           bytes);
}

Gathered gather(const char *place, Purpose purpose, uint64_t mine)
{
    meet(place, kWholeWarp, purpose, &mine, sizeof mine, false);
    const auto [first, last] = warp_lanes_of(*g_block, (size_t)warp_of(*g_warp_lane));
    if (last - first < kWarp) report(place, "the warp has %zu lanes of %d", last - first, kWarp);
    Gathered all;
    for (size_t i = 0; i < all.size(); i++)
        memcpy(&all[i], g_block->meetings[(size_t)warp_of(*g_warp_lane)][i].value, sizeof mine);
    return all;
}

unsigned ballot(const char *place, unsigned mask, bool vote)
{
    meet(place, mask, Purpose::kVote, nullptr, 0, vote);
    return g_warp_lane->votes;
}

}  // namespace yoke::emu
