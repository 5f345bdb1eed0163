// step_meter.h: what memory one step takes, call by call in forward and node by node in backward, for a memory budget.
#pragma once

#include "core/device/device.h"
#include "core/ops/recompute/budget_plan.h"

#include <mutex>
#include <vector>

namespace yoke {

// Figures of a step. Bytes are those beside what was there when forward began.
struct StepFigures {
    int64_t peak = 0, held = 0;
    double seconds = 0;  // of making values again
};

// Meter of one step. Walks may run in several threads, while forward goes on in one: each function takes the lock.
class StepMeter {
public:
    // ---- In forward ----
    // Begins before the first call runs, whose results have taken `fresh` bytes already.
    void start(Device &device, int64_t fresh);
    void begin_call();
    void end_call();
    // Adds a result that follows from another of the call that has ended, as a call of its own.
    void add_cheap_call();
    void end_forward();

    // ---- In backward ----
    // Counts a walk, which looks for the first time at something that was dropped.
    void arrive();
    void depart();
    void begin_node();
    void end_node(uint64_t sequence);
    void note_replay(double seconds);

    // ---- Behind it ----
    // Tells whether forward has ended, and some of its nodes were walked.
    bool is_walked() const;
    bool is_walked_now() const;
    StepFigures figures() const;
    // Puts into the profile what was measured beyond the levels, which its values do not explain.
    void put_unexplained(Profile &profile, const Levels &levels) const;

private:
    struct Measured {
        uint64_t sequence = 0;  // that the next node of the tape had
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
    uint32_t nodes_ = 0;  // of it that were walked
    uint32_t walks_ = 0;  // that are under way
    StepFigures figures_;
};

}  // namespace yoke
