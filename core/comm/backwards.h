// backwards.h: how far a rank is in the backwards of a group, through whichever modules they go.
#pragma once

#include <algorithm>
#include <atomic>
#include <compare>
#include <cstdint>
#include <mutex>
#include <optional>

namespace yoke {

class Backwards {
public:
    // In the order of these numbers. Of a step: its midst is where nobody goes on. Unreduced: parameters were written
    // behind reductions that did not end.
    enum Progress : int64_t { kUnreduced, kSome, kNone, kAll };
    struct Position {
        int64_t steps = 0;         // of two each
        int64_t calls = 0;         // of the group since
        int64_t progress = kNone;  // with the parameters since
        int64_t writes = 0;
        int64_t made = 0;  // of two each: beside ranks of other groups
        auto operator<=>(const Position &) const = default;
    };
    // A module's part in one.
    enum class End { kReduced, kAnswered, kAlone, kFailed };

    // Something was begun, so whoever takes a step has taken it, unless the parameters show its midst.
    void go_on()
    {
        const std::lock_guard lock(mutex_);
        has_gone_on_ = true;
    }
    void begin(bool is_synced)
    {
        const std::lock_guard lock(mutex_);
        if (!open_) has_failed_ = has_reduced_ = has_answered_ = false;
        ++open_;
        has_gone_on_ = true;
        if (is_synced) left_at_.reset();
    }
    // One counts when all of its modules are through: then it is true.
    bool end(End how) noexcept
    {
        const std::lock_guard lock(mutex_);
        has_failed_ |= how == End::kFailed;
        has_reduced_ |= how == End::kReduced;
        has_answered_ |= how == End::kAnswered;
        if (--open_ || has_failed_ || !(has_reduced_ || has_answered_)) return false;
        ++(has_reduced_ ? done_ : answered_);
        has_gone_on_ = false;
        asked_then_ = asked_for_;
        return true;
    }

    // Within a join those of others are answered, and count at its end.
    void begin_join()
    {
        const std::lock_guard lock(mutex_);
        answered_ = 0;
    }
    void end_join()
    {
        const std::lock_guard lock(mutex_);
        done_ += answered_;
        answered_ = 0;
    }
    int64_t answered() const
    {
        const std::lock_guard lock(mutex_);
        return answered_;
    }

    int64_t done() const
    {
        const std::lock_guard lock(mutex_);
        return done_;
    }
    // In a group that goes on for another one.
    void go_on_from(int64_t done)
    {
        const std::lock_guard lock(mutex_);
        done_ = std::max(done_, done);
    }

    // Calls of the group while none is open: ranks that are equally far have asked for equally many.
    void note_asked() noexcept
    {
        if (!open_) ++asked_for_;
    }

    // Where the first of the modules left the group, which is where all of them leave it, since what goes with one may
    // write to another: whole states come from one rank. `look` gives progress and writes.
    template <class Look>
    Position leave(Look &&look)
    {
        {
            const std::lock_guard lock(mutex_);
            if (left_at_) return *left_at_;
        }
        Position now = look();
        const std::lock_guard lock(mutex_);
        // Ranks of one group are less than a step apart: who has all of the former one may go before who is amid the
        // last. Those of unlike groups may be any number apart, and one is amid a step only where it shows.
        constexpr int64_t kAmid = 3;  // the step, and half of another one
        const bool is_amid = now.progress == kSome;
        now.steps = 2 * done_ - (has_gone_on_ && !is_amid ? 0 : kAmid);
        now.made = 2 * done_ - (is_amid ? kAmid : 0);
        if (now.progress == kUnreduced) now.steps = INT64_MIN;  // behind all ranks of the group
        // Whoever is whole there goes first, and of the others who has begun something.
        constexpr int64_t kNoCalls = -1;
        now.calls = !is_amid ? asked_for_ - asked_then_ : has_gone_on_ ? 0 : kNoCalls;
        return *(left_at_ = now);
    }

    // Has `leave` look anew: a script has written parameters since.
    void forget_left()
    {
        const std::lock_guard lock(mutex_);
        left_at_.reset();
    }

    // Whether all modules that have left it so far have gone on in that one.
    bool has_gone_on_in(uint64_t group) const
    {
        const std::lock_guard lock(mutex_);
        return gone_on_in_.value_or(group) == group;
    }
    void note_gone_on_in(uint64_t group) noexcept
    {
        const std::lock_guard lock(mutex_);
        gone_on_in_ = group;
    }

    // Of the modules wrapped so far, alike on all ranks: so long is what opens each backward, whichever module it is
    // of.
    void note_params(size_t count) noexcept
    {
        most_params_ = std::max<size_t>(most_params_, count);
    }
    size_t most_params() const noexcept { return most_params_; }

private:
    mutable std::mutex mutex_;
    std::atomic<int32_t> open_{0};
    std::atomic<int64_t> asked_for_{0};
    std::atomic<size_t> most_params_{0};
    bool has_failed_ = false, has_reduced_ = false, has_answered_ = false;  // of the open one
    bool has_gone_on_ = false;
    int64_t done_ = 0, answered_ = 0;
    int64_t asked_then_ = 0;  // as the last one ended
    std::optional<Position> left_at_;
    std::optional<uint64_t> gone_on_in_;
};

}  // namespace yoke
