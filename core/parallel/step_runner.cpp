#include "core/parallel/step_runner.h"

#include "core/parallel/tell_raised.h"

namespace yoke {

StepRunner::StepRunner(BucketLayout &layout, Compression &compression, BackwardGate &gate,
                       ParamWrites &writes)
    : group_(layout.group()),
      layout_(layout),
      compression_(compression),
      gate_(gate),
      writes_(writes)
{
}

void StepRunner::claim(uint64_t oldest)
{
    const StepTerms terms = gate_.claim(group_.was_told_before(oldest));
    step_.emplace(layout_, compression_, module_, terms);
    group_.backwards().begin(terms.is_synced);
}

void StepRunner::release(Backwards::End how) noexcept
{
    const bool has_unsynced = step_->has_unsynced();
    step_.reset();
    gate_.release(has_unsynced);
    if (group_.backwards().end(how)) end_backward_of_all(group_, writes_);
}

void StepRunner::begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest)
{
    claim(oldest);
    try {
        step_->begin(reached);
    } catch (...) {
        fail();
        throw;
    }
}

bool StepRunner::is_synced_over(const Group &group) const noexcept
{
    return &group_ == &group && step_ && step_->terms().is_synced;
}

void StepRunner::open(StepRunner *before, StepRunner *after)
{
    step_->open(before ? &*before->step_ : nullptr, after ? &*after->step_ : nullptr);
}

void StepRunner::finish()
{
    step_->finish();
    gate_.note_reduced(step_->terms(), step_->root());
}

void StepRunner::end()
{
    try {
        if (step_->terms().is_synced) finish();
    } catch (...) {
        fail();
        throw;
    }
    release(step_->end());
}

bool StepRunner::answer()
{
    claim(0);
    try {
        const bool goes_on = step_->answer();
        if (goes_on) finish();
        release(goes_on ? step_->end() : Backwards::End::kAlone);
        return goes_on;
    } catch (...) {
        fail();
        throw;
    }
}

// Ends a failed step. If the step is synced, ends the group: the other ranks wait for this rank's buckets.
void StepRunner::fail() noexcept
{
    const bool is_synced = step_->terms().is_synced;
    if (is_synced) {
        tell_raised(group_, step_->terms().call());
        compression_.abandon();
        gate_.close();
        note_told_of_all(group_, false);
    }
    release(is_synced ? Backwards::End::kFailed : Backwards::End::kAlone);
}

// Closes the gate and ends the group for a refused backward that would have reduced. A backward of
// another thread goes on.
void StepRunner::refuse() noexcept
{
    if (gate_.refuse()) tell_raised(group_, "backward");
}

}  // namespace yoke
