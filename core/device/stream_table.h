// stream_table.h: the lanes and spare events of one device, behind stream.h.
#pragma once

#include "core/device/stream.h"

#include <bitset>
#include <mutex>
#include <vector>

namespace yoke {

struct StreamTable {
    explicit StreamTable(Device &device);

    // Of backends whose entries want none of it: it is held while streams are asked and events recorded.
    Mutex mutex{LockRank::kDevices};
    std::atomic<int> count{1};  // of lanes that were ever used
    Lane lanes[kMaxLanes];
    std::vector<Lane *> resting;     // open, ours, without a handle
    Ref<Stream> first;               // the default stream
    std::vector<Ref<Stream>> named;  // of native handles that were given bare
    std::bitset<kMaxLanes> inner;    // whose streams the core itself works on

    Mutex spare_mutex{LockRank::kOther};
    std::vector<void *> spare_events;  // without timing
};

StreamTable &table_of(Device &device);

inline constexpr size_t kMostSpareEvents = 64;

// A fence behind the present work of a lane's stream. The table may be locked.
Ref<Fence> make_fence(const Lane &lane);

[[noreturn]] void fail_no_streams(const Device &device);

// The device of a stream; raises where it cannot be used any more.
Device &usable_device(const Stream &stream);

}  // namespace yoke
