// Stream of bytes through shared memory, from one writer to one reader.
//
// Contract
//  * The control words and the bytes lie in shared memory. Each side maps the bytes twice, end to end, so any run of
//    bytes up to the capacity is contiguous.
//  * `written` and `taken` count bytes and never wrap. Each counter has its own cache line and is changed by a single
//    side. A faulty peer can write wrong counters, but this side never reads or writes outside the ring.
#pragma once

#include <atomic>
#include <cstring>

#include "kernels/cpu/comm/shared.h"

namespace yoke::cpu::comm {

// Returns the bytes of each ring on a machine with so many ranks. Each pair has a ring in each direction. A ring has
// 512 KiB up to 8 ranks, then less, but always more than a chunk.
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
    // Copies bytes into the ring, or skips them if `from` is null: at most room() bytes in all. Before publish, the
    // reader sees none of the bytes.
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
    uint64_t taken_ = 0;  // as far as known
};

class RingReader {
public:
    RingReader(RingWords *words, Mapping bytes)
        : words_(words), bytes_(static_cast<Mapping &&>(bytes)), capacity_(bytes_.bytes() / 2)
    {
    }

    // Returns the number of bytes ready to read; 0 if the peer's counter is wrong. Looks again if fewer than `wanted`
    // are known.
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
