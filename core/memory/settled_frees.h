// settled_frees.h: which frees of an arena are settled: no work uses their bytes any more. Frees are numbered, and all
// up to a number are settled together.
//
// No lock of its own: Growth's lock guards the answers.
#pragma once

#include "core/memory/guards.h"

#include <algorithm>

namespace yoke {

class SettledFrees {
public:
    // Returns the number of the last free that is known to be settled.
    uint64_t last() const noexcept { return last_; }

    // Asks the fences of the open question; returns whether no question is open afterwards.
    bool ask_fences() noexcept
    {
        if (fences_.empty()) return true;
        if (!drop_reached(fences_)) return false;
        last_ = std::max(last_, asked_);
        return true;
    }
    // Opens a question about the frees up to `clock`. each_fence(add) adds a fence behind all work that may use their
    // bytes; without a fence the frees are settled.
    template <class F>
    void ask(uint64_t clock, const F &each_fence)
    {
        asked_ = clock;
        each_fence([this](Ref<Fence> fence) { fences_.push_back(std::move(fence)); });
        if (fences_.empty()) last_ = std::max(last_, asked_);
    }
    // Drops the pending fences. Their frees stay unsettled.
    void give_up() noexcept { fences_.clear(); }

    // Returns the number of calls of forget(). An answer from before the last call is invalid.
    uint64_t forgets() const noexcept { return forgets_; }
    // Counts the frees up to `clock` as settled, if forget() has not been called since the host's wait began at
    // `forgets`.
    void note_waited(uint64_t clock, uint64_t forgets) noexcept
    {
        if (forgets == forgets_) last_ = std::max(last_, clock);
    }
    void forget() noexcept
    {
        last_ = 0;
        ++forgets_;
        fences_.clear();
    }

private:
    uint64_t last_ = 0, asked_ = 0, forgets_ = 0;
    Guards fences_;  // fences behind the work of the frees up to asked_
};

}  // namespace yoke
