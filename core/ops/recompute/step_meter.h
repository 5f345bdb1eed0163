// step_meter.h: memory of a step, by call in forward and by node in backward, for a memory budget.
#pragma once

#include "core/device/device.h"
#include "core/ops/recompute/budget_plan.h"

#include <mutex>
#include <vector>

namespace yoke {

// Figures of a step. Bytes count from the memory in use at the begin of forward.
struct StepFigures {
    int64_t peak = 0, held = 0;
    double seconds = 0;  // for recomputing values
};

// Meter of a step. Walks may run in several threads while forward goes on in its thread, so each function takes the
// lock.
class StepMeter {
public:
    // ---- In forward ----
    // Begins before the first call runs, whose results have taken `fresh` bytes already.
    void start(Device &device, int64_t fresh);
    void begin_call();
    void end_call();
    // Adds a result that follows from another result of the ended call, as a call of its own.
    void add_cheap_call();
    void end_forward();

    // ---- In backward ----
    // Counts a walk at its first look at a dropped value.
    void arrive();
    void depart();
    void begin_node();
    void end_node(uint64_t sequence);
    void note_replay(double seconds);

    // ---- After the step ----
    // Returns whether forward has ended, and some nodes of forward were walked.
    bool is_walked() const;
    bool is_walked_now() const;
    StepFigures figures() const;
    // Stores in the profile the measured bytes beyond the levels, not explained by values.
    void put_unexplained(Profile &profile, const Levels &levels) const;

private:
    struct Measured {
        uint64_t sequence = 0;  // number of the next tape node at the call
        int64_t forward = 0, before_node = 0, in_node = 0;
    };

    uint32_t call_of(uint64_t sequence) const;
    int64_t lap();
    int64_t taken() const;

    mutable std::mutex mutex_;
    Device *device_ = nullptr;
    std::vector<Measured> measured_;  // by call
    int64_t base_ = 0, turn_ = 0, node_begin_ = 0, node_most_ = 0;
    uint64_t end_ = 0;    // the sequence number behind forward
    uint32_t nodes_ = 0;  // walked nodes of forward
    uint32_t walks_ = 0;  // walks under way
    StepFigures figures_;
};

}  // namespace yoke
