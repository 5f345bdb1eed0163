// A block of threads during its run, for the files of the emulation.
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

// Kind of an operation in which a warp's lanes meet. Votes and shuffles order no memory; only a barrier does.
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

// Factors of a warp lane for the last two products of matrices. Other lanes may still read the older factors.
struct Products {
    Factors factors[2];
    unsigned count = 0;
};

// Copies that a warp lane has begun and not waited for, in the order of the calls.
struct Copies {
    std::vector<std::function<void()>> all;
    size_t older = 0,
           closed = 0;  // copies before the last closed group; copies in any group

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
        known{};  // for each lane of the warp, this one too: number of the last barrier whose earlier work is ordered before this lane

    // Begins as another thread. Most blocks have threads that do little, so fields stay that are written before they
    // are read.
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

// Warps and warp lanes that touched an element of shared memory since the block's last barrier, for one kind of
// access. Lanes are kept for the last warp only, each with a time. This shows every conflict: between two warps by
// the warps, within a warp by its lanes.
struct Visitors {
    unsigned warps = 0, warp_lanes = 0;
    int warp = -1;
    Clock times;  // times of warp_lanes
};
struct Touches {
    unsigned block_time = ~0u;
    int writer = -1;  // only the last writer, which earlier writers precede
    unsigned writer_time = 0;
    Visitors readers, adders;
};

struct Array {
    std::vector<char> bytes;
    size_t unit = 0;  // bytes for each record of touches
    std::vector<Touches> touches;
};

struct Block {
    const std::function<void()> *kernel = nullptr;
    const char *name = "";
    Grid grid;
    std::vector<WarpLane> warp_lanes;
    std::vector<size_t>
        pass;  // warp lanes of the current warp that have not begun, the next lane last
    std::vector<std::vector<Meeting>> meetings;  // for each warp, by warp lane: the last `Meeting`
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

// Gathers a value of each lane in the whole warp, once all lanes have come. The result stays until the lanes' next
// operation.
using Gathered = std::array<uint64_t, kWarp>;
Gathered gather(const char *place, Purpose purpose, uint64_t mine);

}  // namespace yoke::emu
