// What a run of a memory budget takes down behind its forward, and what it makes of all.
#include "core/memory/memory.h"
#include "core/ops/recompute/budget_run.h"

#include <algorithm>

namespace yoke {

int64_t BudgetRun::taken() const
{
    return memory_stats(*device_).allocated - base_;
}

// The most since the last one.
int64_t BudgetRun::lap()
{
    const int64_t most = lap_peak(*device_) - base_;
    figures_.peak = std::max(figures_.peak, most);
    node_most_ = std::max(node_most_, most);
    return most;
}

// ---- Backward -------------------------------------------------------------------------------------------------

// What the loss has taken, from the end of the scope on.
void BudgetRun::arrive()
{
    const std::lock_guard lock(mutex_);
    ++walks_;
    turn_ = std::max(turn_, lap());
    node_begin_ = taken();
}

void BudgetRun::depart()
{
    const std::lock_guard lock(mutex_);
    --walks_;
}

void BudgetRun::begin_node()
{
    const std::lock_guard lock(mutex_);
    lap();
    node_begin_ = node_most_ = taken();
}

uint32_t BudgetRun::call_of(uint64_t sequence) const
{
    if (end_ && sequence >= end_) return kNever;
    const auto place = std::ranges::upper_bound(measured_, sequence, {}, &Measured::sequence);
    return static_cast<uint32_t>(place - measured_.begin()) - 1;  // before the first: kNever
}

void BudgetRun::end_node(uint64_t sequence)
{
    const std::lock_guard lock(mutex_);
    lap();
    const uint32_t at = call_of(sequence);
    if (at == kNever) return;
    ++nodes_;
    measured_[at].before_node = std::max(measured_[at].before_node, node_begin_);
    measured_[at].in_node = std::max(measured_[at].in_node, node_most_);
}

void BudgetRun::note_replay(double seconds)
{
    const std::lock_guard lock(mutex_);
    lap();
    node_most_ = taken();  // what it has taken for itself is known
    if (device_->host) figures_.seconds += seconds;
}

// ---- Behind it ------------------------------------------------------------------------------------------------

bool BudgetRun::is_known() const
{
    const std::lock_guard lock(mutex_);
    return is_whole_ && nodes_ && end_;
}

bool BudgetRun::is_walked_now() const
{
    const std::lock_guard lock(mutex_);
    return walks_;
}

// A mark stands for all calls before it, too.
Known BudgetRun::forward() const
{
    for (const Known &known : known_)
        if (known->marks.size() == marks_.size() && known->marks.back() == marks_.back())
            return known;
    return nullptr;
}

StepFigures BudgetRun::figures() const
{
    const std::lock_guard lock(mutex_);
    return figures_;
}

// Of the same forward: what only a run that learned could see, and the least time that each call has taken.
static void keep_what_is_known(const Profile &before, Profile &now)
{
    if (before.calls.size() != now.calls.size() || before.values.size() != now.values.size())
        return;
    for (size_t i = 0; i < now.calls.size(); ++i)
        now.calls[i].seconds = std::min(now.calls[i].seconds, before.calls[i].seconds);
    for (size_t v = 0; v < now.values.size(); ++v)
        now.values[v].last_alive = before.values[v].last_alive;
}

void BudgetRun::put_profile(KnownForward &into) const
{
    const std::lock_guard lock(mutex_);
    Profile profile = profile_;
    keep_what_is_known(into.profile, profile);
    const Levels levels = explain(profile, done_);
    for (size_t i = 0; i < profile.calls.size(); ++i) {
        ProfiledCall &call = profile.calls[i];
        call.in_forward = measured_[i].forward - levels.in_forward[i];
        // A node that was not walked takes nothing.
        if (!measured_[i].in_node) continue;
        call.before_node = measured_[i].before_node - levels.before_node[i];
        call.in_node = measured_[i].in_node - levels.in_node[i];
    }
    profile.at_turn = turn_ - levels.at_turn;
    into.profile = std::move(profile);
    into.marks = marks_;
}

}  // namespace yoke
