// work.h: what goes on after the call that began it has returned: who began it may wait for its end, and learns how it
// ended.
#pragma once

#include "core/base/refcount.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>

namespace yoke {

class Work final : public RefCounted {
public:
    // `of` bytes are to be done.
    static Ref<Work> begin(uint64_t of) { return Ref<Work>::adopt(new Work(of)); }

    // For whoever does it; finish comes once, with what it failed with or null.
    void advance(uint64_t bytes) noexcept { bytes_.fetch_add(bytes, std::memory_order_relaxed); }
    void finish(std::exception_ptr failure) noexcept;

    bool is_done() const noexcept { return done_.load(std::memory_order_acquire); }
    uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
    uint64_t of() const noexcept { return of_; }
    // At most `seconds`, below 0: as long as it takes. Whether it has ended; raises what it failed with, each time.
    bool wait(double seconds);

private:
    explicit Work(uint64_t of) : of_(of) {}

    const uint64_t of_;
    std::atomic<uint64_t> bytes_{0};
    std::atomic<bool> done_{false};
    std::mutex mutex_;
    std::condition_variable ended_;
    std::exception_ptr failure_;  // written before done_
};

}  // namespace yoke
