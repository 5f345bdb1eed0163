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

constexpr size_t kRingBytes = 512 << 10;

// Lies in shared memory.
struct RingWords {
    alignas(64) std::atomic<uint64_t> written;
    alignas(64) std::atomic<uint64_t> taken;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

class RingWriter {
public:
    RingWriter(RingWords *words, Mapping bytes)
        : words_(words), bytes_(static_cast<Mapping &&>(bytes))
    {
    }

    size_t room()
    {
        if (written_ - taken_ == kRingBytes) taken_ = words_->taken.load();
        const uint64_t used = written_ - taken_;
        return used <= kRingBytes ? kRingBytes - used : 0;
    }
    // At most room() in all. Nothing is seen by the reader before publish.
    void put(const void *from, size_t bytes)
    {
        if (from) memcpy(bytes_.data() + written_ % kRingBytes, from, bytes);
        written_ += bytes;
    }
    void publish() { words_->written.exchange(written_); }

private:
    RingWords *words_;
    Mapping bytes_;
    uint64_t written_ = 0;
    uint64_t taken_ = 0;  // as far as we have looked
};

class RingReader {
public:
    RingReader(RingWords *words, Mapping bytes)
        : words_(words), bytes_(static_cast<Mapping &&>(bytes))
    {
    }

    // Bytes that lie there; looks anew where fewer than `wanted` are known of.
    size_t available(size_t wanted)
    {
        if (written_ - taken_ < wanted) written_ = words_->written.load();
        const uint64_t there = written_ - taken_;
        return there <= kRingBytes ? there : 0;
    }
    const char *data() const { return bytes_.data() + taken_ % kRingBytes; }
    void take(size_t bytes)
    {
        taken_ += bytes;
        words_->taken.exchange(taken_);
    }

private:
    RingWords *words_;
    Mapping bytes_;
    uint64_t taken_ = 0;
    uint64_t written_ = 0;
};

}  // namespace yoke::cpu::comm
