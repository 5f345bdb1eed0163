// A block of threads while it runs, as the files of the emulation share it.
#pragma once

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "tests/emu/emu.h"
#include "tests/emu/fiber.h"
#include "tests/emu/mma.h"

namespace yoke::emu {

enum class State { kReady, kAtBarrier, kInWarp, kEnded };

// What a warp lane brings to a meeting of its warp. Votes and shuffles order no memory; only a barrier does.
enum class Purpose { kBarrier, kVote, kShuffle, kMatrices, kProduct };
struct Meeting {
    const char *place = nullptr;
    unsigned mask = 0;
    Purpose purpose = Purpose::kBarrier;
    bool vote = false;
    size_t bytes = 0;
    char value[8] = {};
};

using Clock = std::array<unsigned, kWarp>;

// What a warp lane brought to the last two products of matrices: others may still read the older one.
struct Products {
    Factors factors[2];
    unsigned count = 0;
};

// Copies that a warp lane began and has not waited for, in the order of their beginning.
struct Copies {
    std::vector<std::function<void()>> all;
    size_t older = 0,
           closed = 0;  // of them in groups before the last one that was closed, and in groups

    void arrive(size_t count)
    {
        for (size_t i = 0; i < count; i++) all[i]();
        all.erase(all.begin(), all.begin() + (ptrdiff_t)count);
        older -= std::min(older, count);
        closed -= std::min(closed, count);
    }
};

struct WarpLane {
    Thread thread;
    Fiber *fiber = nullptr;
    State state = State::kReady;
    bool fresh = true;  // has not begun
    const char *barrier = nullptr;
    Meeting brought;
    unsigned votes = 0;
    Products products;
    Copies copies;
    Clock
        known{};  // up to which barrier of its warp's lanes, its own among them, all that they did is ordered before it

    // As another thread: most blocks are of threads that do little, so what is written before it is read stays.
    void begin(const Thread &as)
    {
        thread = as;
        state = State::kReady;
        fresh = true;
        products.count = 0;
        if (copies.all.size() + copies.older + copies.closed) copies = {};
        known = {};
        known[(size_t)(as.number % kWarp)] = 1;
    }
};

// Who touched an element of shared memory since the block's last barrier: of one kind of access which warps, and of the
// last of these the warp lanes, each with its own time. With these every conflict is seen: conflicts of two warps by
// the warps, of one warp by its warp lanes.
struct Visitors {
    unsigned warps = 0, warp_lanes = 0;
    int warp = -1;
    Clock times;  // of those in warp_lanes
};
struct Touches {
    unsigned block_time = ~0u;
    int writer = -1;  // the last one: an earlier one was ordered before it
    unsigned writer_time = 0;
    Visitors readers, adders;
};

struct Array {
    std::vector<char> bytes;
    size_t unit = 0;  // bytes that one record of touches is for
    std::vector<Touches> touches;
};

struct Block {
    const std::function<void()> *kernel = nullptr;
    const char *name = "";
    Grid grid;
    std::vector<WarpLane> warp_lanes;
    std::vector<size_t>
        pass;  // warp lanes of the warp that runs now and have not begun, the next one last
    std::vector<std::vector<Meeting>>
        meetings;  // of each warp, by warp lane: what was brought to the last one
    std::map<const void *, Array> arrays;
    size_t dynamic_bytes = 0;
    unsigned time = 0;
    bool any_vote = false;  // at the last barrier
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

extern constinit thread_local Block *g_block;
extern constinit thread_local WarpLane *g_warp_lane;

inline int warp_of(const WarpLane &warp_lane)
{
    return warp_lane.thread.number / kWarp;
}

// What each lane of the whole warp brings, once all of them have come. It stays until they next meet.
using Gathered = std::array<uint64_t, kWarp>;
Gathered gather(const char *place, Purpose purpose, uint64_t mine);

}  // namespace yoke::emu
