#include "core/ops/recompute/step_meter.h"

#include "core/autograd/node.h"
#include "core/memory/memory.h"

#include <algorithm>

namespace yoke {

int64_t StepMeter::taken() const
{
    return memory_stats(*device_).allocated - base_;
}

// Returns the most bytes taken since the last lap, and updates the step's peak.
int64_t StepMeter::lap()
{
    const int64_t most = lap_peak(*device_) - base_;
    figures_.peak = std::max(figures_.peak, most);
    node_most_ = std::max(node_most_, most);
    return most;
}

// ---- Forward --------------------------------------------------------------------------------------------------

void StepMeter::start(Device &device, int64_t fresh)
{
    const std::lock_guard lock(mutex_);
    device_ = &device;
    base_ = memory_stats(device).allocated - fresh;
    lap_peak(device);
}

void StepMeter::begin_call()
{
    const std::lock_guard lock(mutex_);
    measured_.push_back({next_sequence_number()});
}

void StepMeter::end_call()
{
    const std::lock_guard lock(mutex_);
    measured_.back().forward = lap();
}

void StepMeter::add_cheap_call()
{
    const std::lock_guard lock(mutex_);
    measured_.push_back({next_sequence_number(), measured_.back().forward});
}

void StepMeter::end_forward()
{
    const std::lock_guard lock(mutex_);
    end_ = next_sequence_number();
    if (!device_) return;
    lap();
    figures_.held = taken();
}

// ---- Backward -------------------------------------------------------------------------------------------------

// Counts a walk, and notes the peak between forward and the walk, such as the loss has taken.
void StepMeter::arrive()
{
    const std::lock_guard lock(mutex_);
    ++walks_;
    turn_ = std::max(turn_, lap());
    node_begin_ = taken();
}

void StepMeter::depart()
{
    const std::lock_guard lock(mutex_);
    --walks_;
}

void StepMeter::begin_node()
{
    const std::lock_guard lock(mutex_);
    lap();
    node_begin_ = node_most_ = taken();
}

uint32_t StepMeter::call_of(uint64_t sequence) const
{
    if (end_ && sequence >= end_) return kNever;
    const auto place = std::ranges::upper_bound(measured_, sequence, {}, &Measured::sequence);
    return static_cast<uint32_t>(place - measured_.begin()) - 1;  // before the first: kNever
}

void StepMeter::end_node(uint64_t sequence)
{
    const std::lock_guard lock(mutex_);
    lap();
    const uint32_t at = call_of(sequence);
    if (at == kNever) return;
    ++nodes_;
    measured_[at].before_node = std::max(measured_[at].before_node, node_begin_);
    measured_[at].in_node = std::max(measured_[at].in_node, node_most_);
}

void StepMeter::note_replay(double seconds)
{
    const std::lock_guard lock(mutex_);
    lap();
    node_most_ = taken();  // the replay's own memory is known already
    if (device_->host) figures_.seconds += seconds;
}

// ---- After the step -------------------------------------------------------------------------------------------

bool StepMeter::is_walked() const
{
    const std::lock_guard lock(mutex_);
    return nodes_ && end_;
}

bool StepMeter::is_walked_now() const
{
    const std::lock_guard lock(mutex_);
    return walks_;
}

StepFigures StepMeter::figures() const
{
    const std::lock_guard lock(mutex_);
    return figures_;
}

void StepMeter::put_unexplained(Profile &profile, const Levels &levels) const
{
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < profile.calls.size(); ++i) {
        ProfiledCall &call = profile.calls[i];
        call.in_forward = measured_[i].forward - levels.in_forward[i];
        // An unwalked node takes no memory.
        if (!measured_[i].in_node) continue;
        call.before_node = measured_[i].before_node - levels.before_node[i];
        call.in_node = measured_[i].in_node - levels.in_node[i];
    }
    profile.at_turn = turn_ - levels.at_turn;
}

}  // namespace yoke
