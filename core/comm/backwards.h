// `backwards.h`: how far a rank is in a group's backward passes, across all modules.
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
    // Progress with an optimizer's step, in order of preference, lowest first. kSome: amid the step, where no rank
    // can go on. kUnreduced: parameters were written behind reductions that did not end.
    enum Progress : int64_t { kUnreduced, kSome, kNone, kAll };
    struct Position {
        int64_t steps = 0;         // 2 for each step
        int64_t calls = 0;         // the group's calls since
        int64_t progress = kNone;  // progress of the parameters since
        int64_t writes = 0;
        int64_t made = 0;  // 2 for each step; compares ranks of different groups
        auto operator<=>(const Position &) const = default;
    };
    // Result of a module's part in a backward.
    enum class End { kReduced, kAnswered, kAlone, kFailed };

    // Notes that this rank goes on after its last backward. So the optimizer's step counts as over, unless the
    // parameters show a half-done step.
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
    // Ends a module's part. If parts are still open, a part has failed, or no part was reduced or answered, returns
    // false. Else counts the backward and returns true.
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

    // Begins a join: sets the number of answered backward passes to 0. Passes answered from now on count as done at
    // end_join.
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
    // Sets the number of done backward passes to `done`, if this is larger. `done` is the number of the group that
    // this group continues.
    void go_on_from(int64_t done)
    {
        const std::lock_guard lock(mutex_);
        done_ = std::max(done_, done);
    }

    // Counts a call of the group, unless a backward is open. Ranks that are equally far have equal counts.
    void note_asked() noexcept
    {
        if (!open_) ++asked_for_;
    }

    // Returns the rank's position when the first module left the group. The first call asks `look` for progress and
    // writes; later calls return the same position. An optimizer may write to several modules, so all modules use a
    // single position.
    template <class Look>
    Position leave(Look &&look)
    {
        {
            const std::lock_guard lock(mutex_);
            if (left_at_) return *left_at_;
        }
        Position now = look();
        const std::lock_guard lock(mutex_);
        // Ranks of a group are less than a step apart. So a rank with all of the former step may go before a rank
        // amid the last step. Ranks of unlike groups may be any number of steps apart, so only a visible half-done
        // step counts.
        constexpr int64_t kAmid = 3;  // a step, and half of another step
        const bool is_amid = now.progress == kSome;
        now.steps = 2 * done_ - (has_gone_on_ && !is_amid ? 0 : kAmid);
        now.made = 2 * done_ - (is_amid ? kAmid : 0);
        if (now.progress == kUnreduced) now.steps = INT64_MIN;  // last of all ranks of the group
        // At an equal count, a rank with a whole step goes first, then a rank that has begun another call.
        constexpr int64_t kNoCalls = -1;
        now.calls = !is_amid ? asked_for_ - asked_then_ : has_gone_on_ ? 0 : kNoCalls;
        return *(left_at_ = now);
    }

    // Forgets the position, so the next `leave` calls `look` again. A script has written parameters since.
    void forget_left()
    {
        const std::lock_guard lock(mutex_);
        left_at_.reset();
    }

    // Returns whether the modules that have left went on in `group`; true if no module has gone on yet.
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

    // Takes the number of a module's parameters, alike on all ranks, and keeps the largest number. The largest number
    // gives the length of every backward's header.
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
    // State of the open backward pass.
    bool has_failed_ = false, has_reduced_ = false, has_answered_ = false;
    bool has_gone_on_ = false;
    int64_t done_ = 0, answered_ = 0;
    int64_t asked_then_ = 0;  // at the end of the last backward
    std::optional<Position> left_at_;
    std::optional<uint64_t> gone_on_in_;
};

}  // namespace yoke
