// blocks.h: the parts of the allocator: size classes, what one thread keeps, what a device keeps.
//
// A block goes from the backend to a user, then waits in the cache of the thread that freed it
// (small ones) or in its device's arena for the same stream, and from there to the next user. Waiting
// blocks of one stream never serve another: the order of one stream is what makes reuse safe. A block that
// other streams have used waits in its arena with fences behind their work, and its own stream waits for those
// when it serves again.
// Nothing is ever written into a block, since it may not be memory that the host can reach.
#pragma once

#include "core/base/fork.h"
#include "core/base/tally.h"
#include "core/device/stream.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <vector>

namespace yoke {

// ---- Size classes: multiples of 64 bytes up to 4 KiB, then eight to a power of two ----------------

inline constexpr uint64_t kSmallStep = 64;
inline constexpr uint64_t kMaxSmall = 4096;
inline constexpr int kSmallClasses = kMaxSmall / kSmallStep;
inline constexpr uint64_t kMaxBlock = uint64_t{1} << 62;  // what is larger no machine has
inline constexpr int kClasses = kSmallClasses + (62 - 12) * 8;

// The size of the class of a request, at most an eighth more than asked for beyond 4 KiB. `alignment`
// is the device's, a power of two. 0 < bytes <= kMaxBlock.
inline uint64_t class_size(uint64_t bytes, uint64_t alignment)
{
    uint64_t step = std::max(kSmallStep, alignment);
    if (bytes > kMaxSmall) {
        const int power = std::bit_width(bytes - 1) - 1;  // 2^power < bytes <= 2^(power+1)
        step = std::max(step, uint64_t{1} << (power - 3));
    }
    return (bytes + step - 1) & ~(step - 1);
}

// The number of the class of that size.
inline int class_index(uint64_t size)
{
    if (size <= kMaxSmall) return static_cast<int>((size - 1) / kSmallStep);
    const int power = std::bit_width(size - 1) - 1;
    const uint64_t eighth = ((size - 1) >> (power - 3)) & 7;
    return kSmallClasses + (power - 12) * 8 + static_cast<int>(eighth);
}

inline uint64_t index_size(int index)
{
    const auto i = static_cast<uint64_t>(index);
    if (index < kSmallClasses) return (i + 1) * kSmallStep;
    const uint64_t power = 12 + (i - kSmallClasses) / 8, eighth = (i - kSmallClasses) % 8;
    return (uint64_t{1} << power) + ((eighth + 1) << (power - 3));
}

// ---- A short stack of blocks that never raises ------------------------------------------------------

class BlockStack {
public:
    BlockStack() = default;
    BlockStack(const BlockStack &) = delete;
    BlockStack &operator=(const BlockStack &) = delete;
    ~BlockStack();
    bool push(void *block) noexcept;  // false: no host memory to note it
    void *pop() noexcept { return count_ ? items_[--count_] : nullptr; }

private:
    void **items_ = nullptr;
    size_t count_ = 0, capacity_ = 0;
};

// A block that other streams have used.
struct FencedBlock {
    void *block;
    int index;
    std::vector<Ref<Fence>> fences;
};

// What waits for one stream of a device.
struct Arena {
    uint8_t lane = 0;
    BlockStack classes[kClasses];
    std::vector<FencedBlock> fenced;  // oldest first
};

// What a wait before a free found, kept for who next waits for the device. The block is free either way, but a device
// tells of a failure once, and this may have been the time.
void tell_wait(const Device &device, yoke_status status) noexcept;

// ---- One device -----------------------------------------------------------------------------------------

class DeviceMemory {
public:
    explicit DeviceMemory(Device &device) : device_(device) {}

    // A waiting block of that class, or nullptr.
    void *take(int index, uint8_t lane) noexcept;
    // Lets a block wait; false if there is no host memory to note it.
    bool keep(void *block, int index, uint8_t lane) noexcept;
    // The same with fences: take_fenced makes the lane's stream wait for them.
    void *take_fenced(int index, uint8_t lane);
    void keep_fenced(FencedBlock &&block, uint8_t lane);

    // From and to the backend. obtain() returns the backend's status; give_back() waits first for the
    // work of the stream that used the block.
    yoke_status obtain(uint64_t size, void **block) noexcept;
    void give_back(void *block, uint64_t size, uint8_t lane) noexcept;
    // Everything that waits goes back to the backend.
    void flush() noexcept;

    void count_alloc(uint64_t size) noexcept
    {
        raise_peak(max_allocated_, step_allocated(size, static_cast<int64_t>(size)));
    }
    void count_free(uint64_t size) noexcept { step_allocated(size, -static_cast<int64_t>(size)); }

    void count_foreign(int64_t bytes) noexcept
    {
        raise_peak(max_reserved_, reserved_.fetch_add(bytes, std::memory_order_relaxed) + bytes);
        raise_peak(max_allocated_, allocated_.add_shared(bytes));
    }

    Device &device() const noexcept { return device_; }

private:
    friend struct MemoryStatistics;
    using Counter = std::atomic<int64_t>;
    // Small blocks come and go with every op. The others are seen in one order, so that their peak is exact.
    int64_t step_allocated(uint64_t size, int64_t step) noexcept
    {
        return size <= kMaxSmall ? allocated_.add(step) : allocated_.add_shared(step);
    }
    static void raise_peak(Counter &peak, int64_t reached) noexcept
    {
        int64_t most = peak.load(std::memory_order_relaxed);
        while (reached > most &&
               !peak.compare_exchange_weak(most, reached, std::memory_order_relaxed)) {
        }
    }
    Arena *arena_of(uint8_t lane, bool make) noexcept;
    void release(void *block, uint64_t size) noexcept;

    Device &device_;
    Mutex mutex_{LockRank::kMemory};
    std::vector<std::unique_ptr<Arena>> arenas_;  // few: one for each stream in use
    std::atomic<int> fenced_{0};                  // blocks that wait with fences
    alignas(64) Tally allocated_;
    Counter max_allocated_{0};       // since the last lap
    Counter past_max_allocated_{0};  // before that
    Counter reserved_{0};
    Counter max_reserved_{0};
};

// The memory of a device, made at first use.
DeviceMemory &make_memory(Device &device);
inline DeviceMemory &memory_of(Device &device)
{
    DeviceMemory *memory = device.memory.load(std::memory_order_acquire);
    return memory ? *memory : make_memory(device);
}

// ---- What one thread keeps: small blocks of the first few devices, without a lock ------------------

struct ThreadCache {
    static constexpr int kDevices = 4;
    // Of one device. A garbage collector drops small tensors by the thousand: most should still be
    // here when the script goes on.
    static constexpr uint64_t kMaxBytes = 1024 * 1024;

    // Blocks of one class, all of one stream.
    struct Bin {
        uint32_t lane;
        uint32_t count;
        uint32_t capacity;
        void **items;  // beside the blocks, since a device's memory is not ours to write
        bool grow() noexcept;
    };
    struct Slot {
        Device *device;  // null: nothing kept yet
        uint64_t bytes;
        Bin bins[kSmallClasses];
    };
    Slot slots[kDevices];

    // The calling thread's; nullptr if there is no host memory for it.
    static ThreadCache *of_thread() noexcept
    {
        ThreadState *thread = try_thread_state();
        if (!thread) [[unlikely]]
            return nullptr;
        if (!thread->memory_cache) [[unlikely]]
            thread->memory_cache = static_cast<ThreadCache *>(calloc(1, sizeof(ThreadCache)));
        return thread->memory_cache;
    }

    // A waiting block of that class, or nullptr; and the way back, false if there is no room.
    void *take(const Device &device, int index, uint8_t lane) noexcept;
    bool keep(Device &device, void *block, int index, uint8_t lane) noexcept;

    // Frees the lists of a cache that has been drained.
    void free_lists() noexcept;

    // Moves all blocks of a device (nullptr: of every one) to the devices' arenas.
    void drain(const Device *device) noexcept;

private:
    static void drain_bin(Slot &slot, int index) noexcept;
};

inline void *ThreadCache::take(const Device &device, int index, uint8_t lane) noexcept
{
    Slot &slot = slots[device.ordinal];
    Bin &bin = slot.bins[index];
    if (bin.count == 0 || bin.lane != lane) return nullptr;
    slot.bytes -= index_size(index);
    return bin.items[--bin.count];
}

inline bool ThreadCache::keep(Device &device, void *block, int index, uint8_t lane) noexcept
{
    Slot &slot = slots[device.ordinal];
    Bin &bin = slot.bins[index];
    const uint64_t size = index_size(index);
    if (bin.count && bin.lane != lane) [[unlikely]]
        drain_bin(slot, index);  // the thread has gone on to another stream
    if (slot.bytes + size > kMaxBytes || (bin.count == bin.capacity && !bin.grow())) return false;
    if (bin.count == 0) {
        bin.lane = lane;
        slot.device = &device;
    }
    slot.bytes += size;
    bin.items[bin.count++] = block;
    return true;
}

}  // namespace yoke
