#include "tests/emu/emu.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <vector>

#include "tests/emu/fiber.h"

namespace yoke::emu {

namespace {

enum class State { kReady, kAtBarrier, kInWarp, kEnded };

// What a lane brings to a meeting of its warp.
struct Meeting {
    const char *place = nullptr;
    unsigned mask = 0;
    bool vote = false;
    size_t bytes = 0;
    char value[8] = {};
};

struct Lane {
    Thread thread;
    Fiber *fiber = nullptr;
    State state = State::kReady;
    const char *barrier = nullptr;
    Meeting brought, taken;
    unsigned votes = 0;
};

// Who touched an element last, and when: by barriers of the block and meetings of the warp.
struct Touch {
    int number = -1;
    unsigned block_time = 0, warp_time = 0;
};
struct Element {
    Touch writer, first_reader, last_reader;
};
struct Array {
    std::vector<char> bytes;
    std::vector<Element> elements;
};

struct Block {
    const std::function<void()> *kernel = nullptr;
    const char *name = "";
    std::vector<Lane> lanes;
    std::vector<unsigned> warp_times;
    std::vector<std::vector<Meeting>>
        meetings;  // of each warp, by lane: what was brought to the last one
    std::map<const void *, Array> arrays;
    size_t dynamic_bytes = 0;
    unsigned time = 0;
    bool failed = false;
    Fiber scheduler;
    uint64_t random = 1;

    uint64_t next_random()
    {
        random ^= random << 13;
        random ^= random >> 7;
        return random ^= random << 17;
    }
    template <class T>
    void shuffle(std::vector<T> &items)
    {
        for (size_t i = items.size(); i > 1; i--) std::swap(items[i - 1], items[next_random() % i]);
    }
};

thread_local Block *g_block = nullptr;
thread_local Lane *g_lane = nullptr;
thread_local std::vector<std::unique_ptr<Fiber>>
    g_spare;  // with their stacks, for the next threads

void yield()
{
    Fiber *here = g_lane->fiber;
    here->switch_to(g_block->scheduler);
}

[[noreturn]] void end_thread()
{
    g_lane->state = State::kEnded;
    g_lane->fiber->end_into(g_block->scheduler);
    __builtin_unreachable();
}

void run_thread()
{
    (*g_block->kernel)();
    end_thread();
}

Fiber *take_fiber()
{
    if (g_spare.empty()) return new Fiber();
    Fiber *fiber = g_spare.back().release();
    g_spare.pop_back();
    return fiber;
}

int warp_of(const Lane &lane)
{
    return lane.thread.number / kWarp;
}

// The lanes of a warp as [first, last).
std::pair<size_t, size_t> lanes_of(const Block &block, size_t warp)
{
    return {warp * kWarp, std::min(block.lanes.size(), (warp + 1) * kWarp)};
}

void finding(const char *place, const char *format, va_list args)
{
    char text[400];
    vsnprintf(text, sizeof text, format, args);
    const uint3 b = g_block && g_lane ? g_lane->thread.block_index : uint3{0, 0, 0};
    fprintf(stderr, "emu: %s: %s: %s (block %u,%u,%u thread %d)\n", g_block ? g_block->name : "?",
            place, text, b.x, b.y, b.z, g_lane ? g_lane->thread.number : -1);
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

// Lets a lane run until it waits or ends.
void resume(Block &block, Lane &lane)
{
    g_lane = &lane;
    if (!lane.fiber) {
        lane.fiber = take_fiber();
        lane.fiber->start(run_thread);
    }
    block.scheduler.switch_to(*lane.fiber);
    if (lane.state == State::kEnded) {
        g_spare.emplace_back(lane.fiber);
        lane.fiber = nullptr;
    }
}

// Frees the lanes of a warp whose meeting is complete: all that the mask names are there, for the same purpose.
bool complete_meeting(Block &block, size_t warp)
{
    const auto [first, last] = lanes_of(block, warp);
    bool any = false;
    for (size_t i = first; i < last; i++) {
        Lane &lane = block.lanes[i];
        if (lane.state != State::kInWarp) continue;
        const unsigned mask = lane.brought.mask;
        bool all = true;
        unsigned votes = 0;
        for (size_t k = first; k < last && all; k++) {
            if (!(mask >> (k - first) & 1)) continue;
            const Lane &other = block.lanes[k];
            all = other.state == State::kInWarp && other.brought.mask == mask &&
                  other.brought.bytes == lane.brought.bytes;
            if (all && other.brought.vote) votes |= 1u << (k - first);
        }
        if (!all) continue;
        for (size_t k = first; k < last; k++) {
            if (!(mask >> (k - first) & 1)) continue;
            Lane &other = block.lanes[k];
            other.state = State::kReady;
            other.votes = votes;
            block.meetings[warp][k - first] = other.brought;
        }
        block.warp_times[warp]++;
        any = true;
    }
    return any;
}

// All threads that have not ended stand at one barrier.
bool complete_barrier(Block &block)
{
    const char *place = nullptr;
    for (Lane &lane : block.lanes) {
        if (lane.state == State::kEnded) continue;
        if (lane.state != State::kAtBarrier) return false;
        if (place && strcmp(place, lane.barrier) != 0) {
            g_lane = &lane;
            note(lane.barrier, "waits here while others of the block wait at %s", place);
        }
        place = lane.barrier;
    }
    if (!place) return false;
    for (Lane &lane : block.lanes)
        if (lane.state == State::kAtBarrier) lane.state = State::kReady;
    block.time++;
    return true;
}

void tell_deadlock(Block &block)
{
    for (Lane &lane : block.lanes) {
        if (lane.state == State::kEnded) continue;
        g_lane = &lane;
        note(lane.state == State::kAtBarrier ? lane.barrier : lane.brought.place,
             "waits for threads that never come here");
        return;
    }
}

void run_block(Block &block)
{
    std::vector<size_t> warps(block.warp_times.size());
    std::iota(warps.begin(), warps.end(), size_t{0});
    for (;;) {
        bool ran = false, left = false;
        block.shuffle(warps);
        for (size_t warp : warps) {
            const auto [first, last] = lanes_of(block, warp);
            const size_t offset = block.next_random() % kWarp;
            for (size_t i = first; i < last; i++) {
                Lane &lane = block.lanes[first + (i - first + offset) % (last - first)];
                left |= lane.state != State::kEnded;
                if (lane.state != State::kReady || block.failed) continue;
                resume(block, lane);
                ran = true;
            }
            ran |= complete_meeting(block, warp);
        }
        if (!left || block.failed) break;
        if (ran || complete_barrier(block)) continue;
        tell_deadlock(block);
        break;
    }
    for (Lane &lane : block.lanes) {  // of a block that was abandoned
        delete lane.fiber;
        lane.fiber = nullptr;
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
    block.lanes.assign(count, Lane());
    block.warp_times.assign((count + kWarp - 1) / kWarp, 0);
    block.meetings.assign(block.warp_times.size(), std::vector<Meeting>(kWarp));
    block.arrays.clear();
    block.time = 0;
    for (size_t i = 0; i < count; i++) {
        Thread &t = block.lanes[i].thread;
        t.number = (int)i;
        t.index = {(unsigned)(i % size.x), (unsigned)(i / size.x % size.y),
                   (unsigned)(i / size.x / size.y)};
        t.block_index = index;
        t.block_size = size;
        t.grid_size = grid;
    }
}

}  // namespace

Thread &thread()
{
    return g_lane->thread;
}

int lane_number()
{
    return g_lane->thread.number % kWarp;
}

void report(const char *place, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    finding(place, format, args);
    va_end(args);
    end_thread();
}

bool run(const char *name, dim3 grid, dim3 size, size_t shared_bytes,
         const std::function<void()> &kernel)
{
    Block block;
    block.kernel = &kernel;
    block.name = name;
    block.dynamic_bytes = shared_bytes;
    block.random = seed();
    std::vector<size_t> order((size_t)grid.x * grid.y * grid.z);
    std::iota(order.begin(), order.end(), size_t{0});
    block.shuffle(order);
    g_block = &block;
    for (size_t i : order) {
        const uint3 index{(unsigned)(i % grid.x), (unsigned)(i / grid.x % grid.y),
                          (unsigned)(i / grid.x / grid.y)};
        prepare(block, index, grid, size);
        run_block(block);
        if (block.failed) break;
    }
    g_block = nullptr;
    g_lane = nullptr;
    return !block.failed;
}

void block_barrier(const char *place)
{
    g_lane->barrier = place;
    g_lane->state = State::kAtBarrier;
    yield();
}

static void meet(const char *place, unsigned mask, const void *mine, size_t bytes, bool vote)
{
    if (!(mask >> lane_number() & 1))
        report(place, "the mask %08x leaves out the caller, lane %d", mask, lane_number());
    // Lanes that the block does not have are not waited for.
    const auto [first, last] = lanes_of(*g_block, (size_t)warp_of(*g_lane));
    if (last - first < kWarp) mask &= (1u << (last - first)) - 1;
    Meeting &brought = g_lane->brought;
    brought.place = place;
    brought.mask = mask;
    brought.vote = vote;
    brought.bytes = bytes;
    if (bytes) memcpy(brought.value, mine, bytes);
    g_lane->state = State::kInWarp;
    yield();
}

void warp_barrier(const char *place, unsigned mask)
{
    meet(place, mask, nullptr, 0, false);
}

void exchange(const char *place, unsigned mask, const void *mine, void *theirs, size_t bytes,
              int lane)
{
    meet(place, mask, mine, bytes, false);
    const auto [first, last] = lanes_of(*g_block, (size_t)warp_of(*g_lane));
    if (lane < 0 || lane >= kWarp) report(place, "there is no lane %d", lane);
    if (first + (size_t)lane >= last || !(mask >> lane & 1)) {
        memset(theirs, 0xff, bytes);  // CUDA leaves it undefined: NaN
        return;
    }
    memcpy(theirs, g_block->meetings[(size_t)warp_of(*g_lane)][(size_t)lane].value, bytes);
}

unsigned ballot(const char *place, unsigned mask, bool vote)
{
    meet(place, mask, nullptr, 0, vote);
    return g_lane->votes;
}

// ---- shared memory ---------------------------------------------------------------------------------------------------

SharedArray shared_array(const void *tag, size_t size, size_t count)
{
    if (!tag) count = g_block->dynamic_bytes / size;
    Array &array = g_block->arrays[tag];
    if (array.bytes.empty()) {
        array.bytes.assign(tag ? size * count : g_block->dynamic_bytes, (char)0xff);
        array.elements.resize(count);
    }
    return {array.bytes.data(), count, array.elements.data()};
}

// Whether what `touch` tells of came before now by some barrier, or was the caller's own.
static bool is_ordered(const Touch &touch)
{
    if (touch.number < 0 || touch.number == g_lane->thread.number ||
        touch.block_time != g_block->time)
        return true;
    const int warp = warp_of(*g_lane);
    return touch.number / kWarp == warp && touch.warp_time != g_block->warp_times[(size_t)warp];
}

void note_access(const char *place, const SharedArray &array, size_t i, bool writes)
{
    Element &element = static_cast<Element *>(array.touches)[i];
    const Touch now{g_lane->thread.number, g_block->time,
                    g_block->warp_times[(size_t)warp_of(*g_lane)]};
    if (!is_ordered(element.writer))
        report(place,
               "threads %d (writing) and %d (%s) meet at element %zu with no barrier between",
               element.writer.number, now.number, writes ? "writing" : "reading", i);
    if (!writes) {
        if (is_ordered(element.first_reader)) element.first_reader = now;
        element.last_reader = now;
        return;
    }
    for (const Touch *reader : {&element.first_reader, &element.last_reader})
        if (!is_ordered(*reader))
            report(
                place,
                "threads %d (reading) and %d (writing) meet at element %zu with no barrier between",
                reader->number, now.number, i);
    element.writer = now;
}

}  // namespace yoke::emu
