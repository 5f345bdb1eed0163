// oneDNN primitives, ready to run, found by their keys.
//
// Contract
//  * A cache belongs to a thread: two threads never use the same primitive with its memory objects at once. All
//    functions are called where a OneThread lives. A lookup costs a hash and a comparison or two; a new entry costs
//    some 100 microseconds.
//  * An Entry has these members. `key` has no padding and consists of whole words; the cache hashes and compares its
//    bytes. `used` is 0 if the entry is empty. clear() sets all to zeros. make(key) leaves the entry made or clear.
//    key.room() returns the bytes of operands that oneDNN may pack during make. If oneDNN does not support a case,
//    the entry's `primitive` is null.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

#include "kernels/cpu/onednn_exit.h"
#include "kernels/cpu/onednn_room.h"
#include "kernels/cpu/onednn_thread.h"

namespace yoke::cpu {

// 64 sets of 4 entries. A full set drops the least recently used entry.
template <class Entry>
class PrimitiveCache : ThreadKept {
public:
    // Finds the calling thread's entry for the key, or makes the entry. If this fails, *out is null, and no entry
    // remains.
    template <class Key>
    static dnnl_status_t find(const Key &key, Entry **out)
    {
        *out = nullptr;
        if (!t_cache)
            if (dnnl_status_t status = start()) return status;
        PrimitiveCache *cache = t_cache;
        Entry *set = cache->entries_[hash(key) % kSets], *oldest = set;
        for (Entry *entry = set; entry < set + kWays; entry++) {
            if (entry->used && memcmp(&entry->key, &key, sizeof(key)) == 0) {
                entry->used = ++cache->clock_;
                *out = entry;
                return dnnl_success;
            }
            if (entry->used < oldest->used) oldest = entry;
        }
        if (dnnl_status_t status = make(oldest, key)) return status;
        oldest->key = key;
        oldest->used = ++cache->clock_;
        *out = oldest;
        return dnnl_success;
    }

private:
    static constexpr int kSets = 64, kWays = 4;
    static thread_local PrimitiveCache *t_cache __attribute__((tls_model("initial-exec")));

    template <class Key>
    static uint64_t hash(const Key &key)
    {
        uint64_t words[sizeof(Key) / 8], h = 0;
        memcpy(words, &key, sizeof(words));
        for (uint64_t word : words) h = (h ^ word) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
        return h;
    }

    static dnnl_status_t start()
    {
        if (dnnl_status_t status = start_onednn_thread()) return status;
        PrimitiveCache *cache = new (std::nothrow) PrimitiveCache();
        if (!cache) return dnnl_out_of_memory;
        cache->destroy = [](ThreadKept *self) {
            PrimitiveCache *ended = static_cast<PrimitiveCache *>(self);
            for (auto &set : ended->entries_)
                for (Entry &entry : set) entry.clear();  // also an entry that was not finished
            delete ended;
            t_cache = nullptr;
        };
        keep_for_thread(cache);
        t_cache = cache;
        return dnnl_success;
    }

    template <class Key>
    static dnnl_status_t make(Entry *entry, const Key &key)
    {
        entry->clear();
        const Making making;
        if (!has_room_for_onednn(key.room())) return dnnl_out_of_memory;
        return entry->make(key);
    }

    uint64_t clock_;
    Entry entries_[kSets][kWays];
};

template <class Entry>
thread_local PrimitiveCache<Entry> *PrimitiveCache<Entry>::t_cache
    __attribute__((tls_model("initial-exec")));

// Calls use(entry) with the calling thread's entry for the key, and returns its status. `use` sets entry.settled
// after it ran the primitive. Returns the failure if the entry cannot be made, and dnnl_out_of_memory if an
// allocation of oneDNN throws.
template <class Entry, class Key, class Use>
dnnl_status_t use_onednn(const Key &key, const Use &use)
{
    const Inside inside;
    const OneThread alone;
    if (inside.status() || alone.status()) return std::max(inside.status(), alone.status());
    Entry *entry = nullptr;
    bool was_settled = false;
    dnnl_status_t status = dnnl_out_of_memory;
    try {
        status = PrimitiveCache<Entry>::find(key, &entry);
        was_settled = entry && entry->settled;
        // A first run makes what all primitives share.
        if (entry && !was_settled && !has_room_for_onednn(0)) return dnnl_out_of_memory;
        if (entry) status = use(*entry);
    } catch (const std::exception &) {
        status = dnnl_out_of_memory;
    }
    if (!was_settled) stay_before_statics();
    return status;
}

}  // namespace yoke::cpu
