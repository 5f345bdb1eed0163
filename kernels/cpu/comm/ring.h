// A stream of bytes through shared memory, from one writer to one reader.
//
// Contract
//  * The control words lie in shared memory, and the bytes behind them; each side maps the bytes twice, one behind the
//    other, so that any run of them up to the capacity is in one piece.
//  * `written` and `taken` count bytes for ever; each is changed by one side alone and kept from the other's by a cache
//    line. A peer that has gone mad can make counts nonsense, never make us read or write outside.
#pragma once

#include <atomic>
#include <cstring>

#include "kernels/cpu/comm/shared.h"

namespace yoke::cpu::comm {

// Of each ring on a host with so many ranks, which has one for each pair both ways: 512 KiB up to 8 ranks, then less,
// but more than a chunk.
constexpr size_t ring_bytes(size_t ranks)
{
    constexpr size_t kUnit = 64 << 10;  // as large as pages may be
    constexpr size_t kMost = 512 << 10, kLeast = 192 << 10, kOfOneRank = 4 << 20;
    const size_t share = kOfOneRank / ranks / kUnit * kUnit;
    return share < kLeast ? kLeast : share > kMost ? kMost : share;
}

// Lies in shared memory.
struct RingWords {
    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> taken;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class RingWriter {
public:
    RingWriter(RingWords *words, Mapping bytes)
        : words_(words), bytes_(static_cast<Mapping &&>(bytes)), capacity_(bytes_.bytes() / 2)
    {
    }

    size_t room()
    {
        if (written_ - taken_ == capacity_) taken_ = words_->taken.load();
        const uint64_t used = written_ - taken_;
        return used <= capacity_ ? capacity_ - used : 0;
    }
    // At most room() in all. Nothing is seen by the reader before publish.
    void put(const void *from, size_t bytes)
    {
        if (from) memcpy(bytes_.data() + written_ % capacity_, from, bytes);
        written_ += bytes;
    }
    void publish() { words_->written.exchange(written_); }

private:
    RingWords *words_;
    Mapping bytes_;
    uint64_t capacity_;
    uint64_t written_ = 0;
    uint64_t taken_ = 0;  // as far as we have looked
};

class RingReader {
public:
    RingReader(RingWords *words, Mapping bytes)
        : words_(words), bytes_(static_cast<Mapping &&>(bytes)), capacity_(bytes_.bytes() / 2)
    {
    }

    // Bytes that lie there; looks anew where fewer than `wanted` are known of.
    size_t available(size_t wanted)
    {
        if (written_ - taken_ < wanted) written_ = words_->written.load();
        const uint64_t there = written_ - taken_;
        return there <= capacity_ ? there : 0;
    }
    const char *data() const { return bytes_.data() + taken_ % capacity_; }
    void take(size_t bytes)
    {
        taken_ += bytes;
        words_->taken.exchange(taken_);
    }

private:
    RingWords *words_;
    Mapping bytes_;
    uint64_t capacity_;
    uint64_t taken_ = 0;
    uint64_t written_ = 0;
};

}  // namespace yoke::cpu::comm
