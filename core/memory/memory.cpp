#include "core/memory/memory.h"

#include "core/base/text.h"

#include "core/base/config.h"
#include "core/base/lent.h"
#include "core/base/log.h"
#include "core/base/thread_state.h"
#include "core/device/kinds.h"
#include "core/device/room.h"
#include "core/memory/blocks.h"
#include "core/memory/owner.h"
#include "core/memory/pinned.h"
#include "core/memory/poison.h"

#include <algorithm>

namespace yoke {

// Reads and resets the counters of a device.
struct MemoryStatistics {
    static MemoryStats read(const DeviceMemory &memory)
    {
        MemoryStats stats;
        stats.allocated = memory.allocated_.sum();
        stats.reserved = memory.reserved_.load(std::memory_order_relaxed);
        // Read after the present values, a peak may lag behind them for an instant.
        stats.max_allocated = std::max(
            {stats.allocated, memory.max_allocated_.load(), memory.past_max_allocated_.load()});
        stats.max_reserved = std::max(stats.reserved, memory.max_reserved_.load());
        return stats;
    }
    static void reset_peaks(DeviceMemory &memory)
    {
        memory.past_max_allocated_.store(0);
        memory.max_allocated_.store(memory.allocated_.sum());
        memory.max_reserved_.store(memory.reserved_.load());
    }
    static int64_t lap(DeviceMemory &memory)
    {
        const int64_t most = memory.max_allocated_.load();
        DeviceMemory::raise_peak(memory.past_max_allocated_, most);
        const int64_t now = memory.allocated_.sum();
        memory.max_allocated_.store(now);
        return std::max(most, now);
    }
};

namespace {

constinit Switch no_caching("YOKE_NO_CACHING");

std::string human(uint64_t bytes)
{
    if (bytes < 1024) return std::to_string(bytes) + " bytes";
    const auto [value, unit] = scaled_bytes(static_cast<double>(bytes));
    return format("%.2f %s", value, unit);
}
std::string human(int64_t bytes)
{
    return human(static_cast<uint64_t>(std::max<int64_t>(bytes, 0)));
}

[[noreturn]] __attribute__((cold)) void fail_oom(DeviceMemory &memory, uint64_t bytes,
                                                 const std::string &backend_message)
{
    const Device &device = memory.device();
    const MemoryStats stats = MemoryStatistics::read(memory);
    Room room;
    std::string left = "how much is free is not known", remedy;
    if (room_on(device, &room) == YOKE_OK)
        left = human(room.free) + " of " + human(room.total) + " are free" +
               (room.limit.empty() ? "" : " within " + room.limit);
    if (!room.limit.empty())
        remedy = room.kills ? "raise that limit (docker run --memory=…, MemoryMax= of systemd), "
                            : "raise that limit (ulimit -v unlimited, or -d), ";
    if (stats.allocated > 0) remedy += "drop tensors that are no longer needed, ";
    throw Error(
        YOKE_E_OOM,
        format(
            "no memory on %s: %s (%llu bytes) were asked for; this process has %s allocated and %s reserved there, %s; %suse a smaller batch, or let autocast keep activations in halves (%s)",
            device.name.c_str(), human(bytes).c_str(), static_cast<unsigned long long>(bytes),
            human(stats.allocated).c_str(), human(stats.reserved).c_str(), left.c_str(),
            remedy.c_str(), backend_message.c_str()),
        0, device.name);
}

// From the backend; when it has none left, what waits is given back and it is asked once more.
__attribute__((noinline)) void *obtain(DeviceMemory &memory, uint64_t bytes, uint64_t size)
{
    void *block = nullptr;
    const Device &device = memory.device();
    yoke_status status = would_be_ended(device, size) ? YOKE_E_OOM : memory.obtain(size, &block);
    if (status == YOKE_E_OOM) {
        empty_cache(&memory.device());
        if (would_be_ended(device, size))
            fail_oom(memory, bytes, "the kernel would end the process that touches it");
        status = memory.obtain(size, &block);
    }
    const std::string where = "alloc on " + memory.device().name;
    if (status == YOKE_E_OOM) fail_oom(memory, bytes, take_backend_error(status, where.c_str()));
    check_backend(status, where.c_str(), memory.device().name.c_str());
    return block;
}

ThreadCache *thread_cache(const Device &device, uint64_t size) noexcept
{
    const bool kept = size <= kMaxSmall && device.ordinal < ThreadCache::kDevices;
    return kept ? ThreadCache::of_thread() : nullptr;
}

// Whether a freed block is kept: with caching on, unless it is of no class since it was allocated with caching off.
bool can_wait(const DeviceMemory &memory, uint64_t capacity) noexcept
{
    return no_caching.is_known_as(false) &&
           class_size(capacity, memory.device().info.alignment) == capacity;
}

// Lets the block wait behind what other lanes were given so far; false where it cannot wait, or on a failure.
__attribute__((noinline)) bool keep_behind_uses(DeviceMemory &memory, void *block,
                                                uint64_t capacity, uint8_t lane,
                                                uint16_t uses) noexcept
{
    if (!can_wait(memory, capacity)) return false;
    Device &device = memory.device();
    FencedBlock fenced{block, class_index(capacity), {}};
    try {
        each_lane(device, uses, [&](uint8_t each) {
            if (each == lane) return;
            if (Ref<Fence> fence = fence_behind(device, each); fence.present())
                fenced.fences.push_back(std::move(fence));
        });
        memory.keep_fenced(std::move(fenced), lane);
    } catch (const std::exception &error) {
        log(LogLevel::kDebug, "%s: a block is waited for: %s", device.name.c_str(), error.what());
        return false;
    }
    return true;
}

}  // namespace

void detail::drop_memory_cache(ThreadCache *cache) noexcept
{
    cache->drain(nullptr);
    cache->free_lists();
    free(cache);
    if (no_caching.is_known_as(true)) empty_cache(nullptr);
}

void *allocate_block(Device &device, uint64_t bytes, uint8_t lane, uint64_t *capacity)
{
    *capacity = 0;
    if (bytes == 0) return nullptr;
    check_usable(device);
    if (BlockOwner *owner = BlockOwner::of_thread(); owner && &owner->device() == &device)
        [[unlikely]]
        return owner->allocate(bytes, capacity);
    DeviceMemory &memory = memory_of(device);
    if (bytes > kMaxBlock) fail_oom(memory, bytes, "no device is that large");
    // Of the very size without caching, so that tools that watch memory see the first byte behind it touched.
    const bool caches = is_caching();
    const uint64_t size = caches ? class_size(bytes, device.info.alignment) : bytes;
    void *block = nullptr;
    if (caches) {
        const int index = class_index(size);
        if (ThreadCache *cache = thread_cache(device, size))
            block = cache->take(device, index, lane);
        if (!block) block = memory.take(index, lane);
        if (!block) block = memory.take_fenced(index, lane);
        if (block) unpoison(device, block, size);
    }
    if (!block) block = obtain(memory, bytes, size);
    memory.count_alloc(size);
    *capacity = size;
    return block;
}

void free_block(Device &device, void *block, uint64_t capacity, uint8_t lane,
                uint16_t uses) noexcept
{
    if (!block || (!device.host && is_forked_child())) return;
    if (BlockOwner::is_marked(capacity)) [[unlikely]]
        return BlockOwner::take_back(block, uses);
    DeviceMemory &memory = memory_of(device);
    memory.count_free(capacity);
    if (uses) [[unlikely]] {
        if (keep_behind_uses(memory, block, capacity, lane, uses)) return;
        wait_for_uses(device, lane, uses);
    }
    if (can_wait(memory, capacity)) {
        const int index = class_index(capacity);
        poison(device, block, capacity);
        ThreadCache *cache = thread_cache(device, capacity);
        if (cache && cache->keep(device, block, index, lane)) return;
        if (memory.keep(block, index, lane)) return;
    }
    memory.give_back(block, capacity, lane);
}

void wait_for_uses(Device &device, uint8_t lane, uint16_t uses) noexcept
{
    if (!device.host && is_forked_child()) return;
    const auto wait = [&device](uint8_t each) {
        tell_wait(device, synchronize_lane(device, each));
    };
    wait(lane);
    each_lane(device, uses, [&](uint8_t each) {
        if (each != lane) wait(each);
    });
}

int64_t detail::live_memory(Device &device, size_t most, std::vector<std::string> &names)
{
    if (!device.memory.load()) return 0;
    const int64_t bytes = memory_stats(device).allocated;
    if (bytes > 0 && most > 0)
        names.push_back(human(bytes) + " of " + device.name +
                        " (of a graph, kept for backward, or raw blocks)");
    return bytes > 0;
}

MemoryStats memory_stats(Device &device)
{
    return MemoryStatistics::read(memory_of(device));
}

void reset_peak_memory_stats(Device &device)
{
    MemoryStatistics::reset_peaks(memory_of(device));
}

void count_foreign(Device &device, int64_t bytes) noexcept
{
    memory_of(device).count_foreign(bytes);
}

int64_t lap_peak(Device &device)
{
    return MemoryStatistics::lap(memory_of(device));
}

bool would_be_ended(const Device &device, uint64_t bytes)
{
    constexpr uint64_t kWorthALook = uint64_t{16} << 20;
    Room room;
    if (!device.host || bytes < kWorthALook || room_on(device, &room) != YOKE_OK) return false;
    return room.kills && bytes > room.free;
}

void empty_cache(Device *device)
{
    empty_pinned_cache();
    lent.empty_snapshot_cache();
    if (ThreadCache *cache = thread_state().memory_cache) cache->drain(device);
    if (device) return memory_of(*device).flush();
    for (Device *each : opened_devices()) memory_of(*each).flush();
}

void set_caching(bool enabled)
{
    no_caching.set(!enabled);
    if (!enabled) empty_cache(nullptr);
}

bool is_caching()
{
    return !no_caching.is_on();
}

}  // namespace yoke
