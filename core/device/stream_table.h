// stream_table.h: the lanes and spare events of one device, behind stream.h.
#pragma once

#include "core/device/stream.h"

#include <bitset>
#include <map>
#include <mutex>
#include <vector>

namespace yoke {

struct StreamTable {
    explicit StreamTable(Device &device);

    // Lock held while the backend asks streams and records events, so no backend entry may take this lock.
    Mutex mutex{LockRank::kDevices};
    std::atomic<int> count{1};  // number of lanes used so far
    Lane lanes[kMaxLanes];
    std::vector<Lane *> resting;     // open, Yoke's own, without a handle
    Ref<Stream> first;               // the default stream
    std::vector<Ref<Stream>> named;  // streams of bare native handles
    std::bitset<kMaxLanes> inner;    // lanes with a stream of the core itself

    // Number of the last fence of the waited lane, by waiting and waited lane.
    Mutex order_mutex{LockRank::kOther};
    std::map<std::pair<uint8_t, uint8_t>, uint64_t> order;

    Mutex spare_mutex{LockRank::kOther};
    std::vector<void *> spare_events;  // without timing
};

StreamTable &table_of(Device &device);

inline constexpr size_t kMostSpareEvents = 64;

// Notes that all further work of `lane` comes behind fence `number` of the lane `other`.
void note_order(Device &device, uint8_t lane, const Lane &other, uint64_t number);

// Returns a fence behind the present work of a lane's stream. The caller may hold the table's lock.
Ref<Fence> make_fence(const Lane &lane);

[[noreturn]] void fail_no_streams(const Device &device);

// Returns the device of a stream; raises if the device cannot be used any more.
Device &usable_device(const Stream &stream);

}  // namespace yoke
