// torch_policy.h: model of PyTorch's CUDA caching allocator: its policy, its constants, and the containers with its
// main costs: a set of free blocks for each pool, a recursive mutex for each device, a hash of live blocks in shards,
// statistics.
//
// Written from its documented behaviour: requests are multiples of 512 bytes. Requests up to 1 MiB come from segments
// of 2 MiB, up to 10 MiB from segments of 20 MiB, larger requests from separate segments in multiples of 2 MiB. The
// smallest fitting free block of the stream serves. A rest is split off from 512 bytes on in small segments, from 1
// MiB on in large segments. An expandable segment is a range for each stream and pool, which grows by pages of 2 and
// 20 MiB.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <vector>

class TorchPolicy {
public:
    // Memory of the device, as the model gets it.
    class Source {
    public:
        virtual ~Source() = default;
        virtual uint64_t alloc(uint64_t bytes) = 0;  // 0: there is none
        virtual void free(uint64_t address, uint64_t bytes) = 0;
        virtual uint64_t reserve() = 0;  // an endless range of addresses
    };

    TorchPolicy(Source &source, bool is_expandable) : source_(source), expandable_(is_expandable) {}

    struct Stat {
        int64_t current = 0, peak = 0, allocated = 0, freed = 0;
        void add(int64_t n)
        {
            current += n;
            peak = std::max(peak, current);
            (n > 0 ? allocated : freed) += n > 0 ? n : -n;
        }
    };
    // Each of all memory, of small and of large blocks.
    struct Stats {
        std::array<Stat, 3> allocation, segment, active, inactive_split, allocated_bytes,
            reserved_bytes, active_bytes, inactive_split_bytes, requested_bytes;
    };

    // Returns an address, or 0.
    uint64_t alloc(uint64_t bytes, int stream)
    {
        const std::lock_guard lock(mutex_);
        const uint64_t size = std::max<uint64_t>(512, (bytes + 511) / 512 * 512);
        Pool &pool = pools_[size > kSmall];
        Block *block = find_free(pool, size, stream);
        if (!block) block = make(pool, size, stream);
        if (!block) {
            release_cached();
            block = make(pool, size, stream);
        }
        if (!block) return 0;
        const bool was_split = block->is_split();
        const uint64_t rest = block->size - size;
        if (pool.is_small || expandable_ ? rest >= 512 : rest > kSmall) {
            Block *const behind = new Block{stream, &pool, block->address + size, rest};
            behind->before = block;
            behind->behind = block->behind;
            if (behind->behind) behind->behind->before = behind;
            block->behind = behind;
            block->size = size;
            pool.free.insert(behind);
            if (was_split)
                step(stats_.inactive_split_bytes, pool, -static_cast<int64_t>(size));
            else
                step(stats_.inactive_split_bytes, pool, static_cast<int64_t>(rest)),
                    step(stats_.inactive_split, pool, 1);
        } else if (was_split) {
            step(stats_.inactive_split_bytes, pool, -static_cast<int64_t>(block->size));
            step(stats_.inactive_split, pool, -1);
        }
        block->is_used = true;
        block->requested = bytes;
        active_.insert(block);
        step(stats_.allocation, pool, 1);
        step(stats_.allocated_bytes, pool, static_cast<int64_t>(block->size));
        step(stats_.active, pool, 1);
        step(stats_.active_bytes, pool, static_cast<int64_t>(block->size));
        step(stats_.requested_bytes, pool, static_cast<int64_t>(bytes));
        Shard &shard = shard_of(block->address);
        const std::lock_guard shard_lock(shard.mutex);
        shard.live[block->address] = block;
        return block->address;
    }

    void free(uint64_t address)
    {
        Block *block = nullptr;
        {
            Shard &shard = shard_of(address);
            const std::lock_guard shard_lock(shard.mutex);
            const auto found = shard.live.find(address);
            block = found->second;
            shard.live.erase(found);
        }
        const std::lock_guard lock(mutex_);
        Pool &pool = *block->pool;
        block->is_used = false;
        active_.erase(block);
        step(stats_.allocation, pool, -1);
        step(stats_.allocated_bytes, pool, -static_cast<int64_t>(block->size));
        step(stats_.active, pool, -1);
        step(stats_.active_bytes, pool, -static_cast<int64_t>(block->size));
        step(stats_.requested_bytes, pool, -static_cast<int64_t>(block->requested));
        int64_t splits = block->is_split(), bytes = splits ? static_cast<int64_t>(block->size) : 0;
        for (Block *neighbour : {block->before, block->behind})
            if (neighbour && !neighbour->is_used) {
                pool.free.erase(neighbour);
                --splits;
                absorb(*block, *neighbour);
            }
        step(stats_.inactive_split, pool, splits);
        step(stats_.inactive_split_bytes, pool, bytes);
        pool.free.insert(block);
    }

    const Stats &stats() const { return stats_; }
    int64_t peak_reserved() const { return stats_.reserved_bytes[0].peak; }
    int64_t driver_calls() const { return driver_calls_; }

private:
    static constexpr uint64_t kMiB = uint64_t{1} << 20, kSmall = kMiB, kSmallSegment = 2 * kMiB,
                              kLargeSegment = 20 * kMiB, kLeastOwn = 10 * kMiB;
    struct Pool;
    struct Block {
        int stream;
        Pool *pool;
        uint64_t address, size;
        uint64_t requested = 0;
        Block *before = nullptr, *behind = nullptr;
        bool is_used = false;
        bool is_split() const { return before || behind; }
    };
    struct Less {
        bool operator()(const Block *a, const Block *b) const
        {
            if (a->stream != b->stream) return a->stream < b->stream;
            if (a->size != b->size) return a->size < b->size;
            return a->address < b->address;
        }
    };
    struct Pool {
        explicit Pool(bool small) : is_small(small) {}
        bool is_small;
        std::set<Block *, Less> free;
        struct Range {
            uint64_t end = 0;
            Block *last = nullptr;
        };
        std::map<int, Range> ranges;  // expandable segments, by stream
    };
    struct Shard {
        alignas(64) std::mutex mutex;
        std::unordered_map<uint64_t, Block *> live;
    };

    Shard &shard_of(uint64_t address) { return shards_[(address >> 9) % shards_.size()]; }
    static void step(std::array<Stat, 3> &stat, const Pool &pool, int64_t n)
    {
        if (!n) return;
        stat[0].add(n);
        stat[pool.is_small ? 1 : 2].add(n);
    }
    Block *find_free(Pool &pool, uint64_t size, int stream)
    {
        Block key{stream, &pool, 0, size};
        const auto found = pool.free.lower_bound(&key);
        if (found == pool.free.end() || (*found)->stream != stream) return nullptr;
        Block *const block = *found;
        pool.free.erase(found);
        return block;
    }
    // Merges `other` into `into`; `other` is deleted.
    void absorb(Block &into, Block &other)
    {
        if (other.before == &into) {
            into.behind = other.behind;
            if (into.behind) into.behind->before = &into;
        } else {
            into.address = other.address;
            into.before = other.before;
            if (into.before) into.before->behind = &into;
        }
        into.size += other.size;
        const auto range = into.pool->ranges.find(into.stream);
        if (range != into.pool->ranges.end() && range->second.last == &other)
            range->second.last = &into;
        delete &other;
    }
    void count_driver(Pool &pool, int64_t bytes)
    {
        ++driver_calls_;
        step(stats_.segment, pool, bytes > 0 ? 1 : -1);
        step(stats_.reserved_bytes, pool, bytes);
    }
    Block *make(Pool &pool, uint64_t size, int stream)
    {
        if (expandable_) return extend(pool, size, stream);
        const uint64_t bytes = size <= kSmall ? kSmallSegment
                               : size < kLeastOwn
                                   ? kLargeSegment
                                   : (size + kSmallSegment - 1) / kSmallSegment * kSmallSegment;
        const uint64_t address = source_.alloc(bytes);
        if (!address) return nullptr;
        count_driver(pool, static_cast<int64_t>(bytes));
        return new Block{stream, &pool, address, bytes};
    }
    // Adds pages at the end of the range; its last block takes them in if free. Pages given back in the middle of a
    // range are not used again while the end has space.
    Block *extend(Pool &pool, uint64_t size, int stream)
    {
        Pool::Range &range = pool.ranges[stream];
        if (!range.end) range.end = source_.reserve();
        Block *last = range.last && !range.last->is_used &&
                              range.last->address + range.last->size == range.end
                          ? range.last
                          : nullptr;
        const uint64_t page = pool.is_small ? kSmallSegment : kLargeSegment;
        const uint64_t wanted = size - (last ? last->size : 0);
        const uint64_t bytes = (wanted + page - 1) / page * page;
        for (uint64_t got = 0; got < bytes; got += page) {
            if (!source_.alloc(page)) return nullptr;
            count_driver(pool, static_cast<int64_t>(page));
        }
        if (last) {
            pool.free.erase(last);
            last->size += bytes;
        } else {
            Block *const before = range.last && range.last->address + range.last->size == range.end
                                      ? range.last
                                      : nullptr;
            last = new Block{stream, &pool, range.end, bytes};
            last->before = before;
            if (before) before->behind = last;
        }
        range.end += bytes;
        range.last = last;
        return last;
    }
    void release_cached()
    {
        for (Pool &pool : pools_)
            for (auto at = pool.free.begin(); at != pool.free.end();) {
                Block *const block = *at;
                if (block->is_split() || expandable_) {
                    ++at;
                    continue;
                }
                at = pool.free.erase(at);
                source_.free(block->address, block->size);
                count_driver(pool, -static_cast<int64_t>(block->size));
                delete block;
            }
    }

    Source &source_;
    const bool expandable_;
    std::recursive_mutex mutex_;
    std::array<Pool, 2> pools_{Pool{true}, Pool{false}};
    std::unordered_set<Block *> active_;
    std::array<Shard, 67> shards_;
    Stats stats_;
    int64_t driver_calls_ = 0;
};
