// seldom_asked.h: whether the machine's limits leave memory, asked once for many small blocks.
#pragma once

#include <atomic>
#include <cstdint>

namespace yoke {

class SeldomAsked {
public:
    // Returns whether, by `would_end(bytes)`, so many more bytes end the process. The answer is read from files, so
    // blocks of less than kWorthALook together are not asked about. While the last answer was yes, each block is
    // asked about: a refused request is tried again.
    template <class F>
    bool would_end(uint64_t bytes, const F &would_end)
    {
        if (unasked_.fetch_add(bytes) + bytes < kWorthALook && !is_full_) return false;
        unasked_ = 0;
        const bool is_full = would_end(bytes);
        is_full_ = is_full;
        return is_full;
    }

private:
    static constexpr uint64_t kWorthALook = uint64_t{16} << 20;
    std::atomic<uint64_t> unasked_{0};
    std::atomic<bool> is_full_{false};
};

}  // namespace yoke
