#include "core/parallel/backward_gate.h"

#include "core/base/error.h"

namespace yoke {

StepTerms BackwardGate::claim(bool was_told)
{
    const std::lock_guard first(state_mutex_);
    const std::lock_guard lock(mutex_);
    if (is_walking_)
        fail(
            YOKE_E_STATE,
            "backward: another backward over the same parameters is running; call the backward passes one after the other");
    is_walking_ = true;
    StepTerms terms;
    terms.is_alone = is_closed_ || was_told;
    terms.is_synced = is_sync_ && !terms.is_alone;
    terms.presence = presence_;
    terms.weight = presence_ == Presence::kOut ? 0 : weight_;
    return terms;
}

void BackwardGate::note_reduced(const StepTerms &terms, int32_t root)
{
    const std::lock_guard lock(mutex_);
    has_unsynced_ = false;
    if (terms.presence != Presence::kPlain) joined_root_ = root;
}

void BackwardGate::release(bool has_unsynced) noexcept
{
    const std::lock_guard lock(mutex_);
    has_unsynced_ |= has_unsynced;
    is_walking_ = false;
}

void BackwardGate::set_sync(bool is_on)
{
    const std::lock_guard lock(mutex_);
    is_sync_ = is_on;
}

bool BackwardGate::is_sync() const
{
    const std::lock_guard lock(mutex_);
    return is_sync_;
}

void BackwardGate::set_weight(double n)
{
    const std::lock_guard lock(mutex_);
    weight_ = n;
}

void BackwardGate::close()
{
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
}

bool BackwardGate::is_closed() const
{
    const std::lock_guard lock(mutex_);
    return is_closed_;
}

bool BackwardGate::refuse()
{
    const std::lock_guard lock(mutex_);
    if (is_walking_ || !is_sync_ || is_closed_) return false;
    return is_closed_ = true;
}

void BackwardGate::retire(const std::unique_lock<std::mutex> &)
{
    const std::lock_guard lock(mutex_);
    is_closed_ = is_retired_ = true;
}

bool BackwardGate::is_retired() const
{
    const std::lock_guard lock(mutex_);
    return is_retired_;
}

std::unique_lock<std::mutex> BackwardGate::hold() const
{
    return std::unique_lock(state_mutex_);
}

std::unique_lock<std::mutex> BackwardGate::hold_resting(const char *call) const
{
    std::unique_lock held = hold();
    const std::lock_guard lock(mutex_);
    if (is_walking_)
        fail(
            YOKE_E_STATE,
            "%s: a backward over the parameters is running; make this call after the backward has ended",
            call);
    return held;
}

void BackwardGate::begin_join()
{
    const std::lock_guard lock(mutex_);
    if (presence_ != Presence::kPlain)
        fail(YOKE_E_STATE,
             "join: this rank is already in a join of this group; leave that join first");
    if (!is_sync_)
        fail(YOKE_E_STATE, "join: this rank is in a no_sync; begin the join outside of no_sync");
    presence_ = Presence::kJoined;
    joined_root_ = -1;
}

BackwardGate::Leave BackwardGate::leave_join()
{
    const std::lock_guard lock(mutex_);
    if (presence_ != Presence::kJoined)
        fail(YOKE_E_STATE, "join: this rank is not in a join of this group; begin a join first");
    presence_ = Presence::kOut;
    return {is_sync_, has_unsynced_};
}

int32_t BackwardGate::end_join()
{
    const std::lock_guard lock(mutex_);
    presence_ = Presence::kPlain;
    return joined_root_;
}

void BackwardGate::go_on_from(const BackwardGate &former)
{
    double weight = 1;
    {
        const std::lock_guard lock(former.mutex_);
        weight = former.weight_;
    }
    set_weight(weight);
    set_sync(former.is_sync());
}

}  // namespace yoke
