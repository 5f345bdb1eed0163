// budget_segment.h: figures of a scope of a plan: a row of calls of a profile between two cuts.
#pragma once

#include "core/ops/recompute/budget_plan.h"

#include <vector>

namespace yoke {

// Figures of a segment. Bytes are counted beside the bytes held by earlier scopes.
struct SegmentCost {
    int64_t held = 0;        // from forward to backward
    int64_t in_forward = 0;  // at most
    int64_t in_backward = 0;
    double seconds = 0;  // for recomputing values
};

// Works on a single segment at a time; the arrays cover the whole profile.
class Segment {
public:
    explicit Segment(const Profile &profile);

    // Begins with the calls [begin, end). Values in `crosses` are held for later scopes; results of the calls in
    // `holds` are held too.
    void begin(uint32_t begin, uint32_t end, const std::vector<uint8_t> &crosses,
               const std::vector<uint8_t> &holds = {});
    SegmentCost cost() const;

    // Computes the values' bytes before each call's node in backward, and during the node; by call from `begin` on.
    void live_in_backward(std::span<int64_t> before, std::span<int64_t> in) const;
    // Holds the crossing values, since they are in memory anyway. Returns their calls.
    void hold_crossing(std::vector<uint32_t> &calls);

    // Seconds saved, and bytes taken, by holding the results of a further call.
    struct Gain {
        double seconds = 0;
        int64_t bytes = 0;
        double rate() const { return bytes > 0 ? seconds / static_cast<double>(bytes) : 0; }
    };
    Gain gain(uint32_t call);
    void hold(uint32_t call);
    // Returns whether the call is recomputed, and its results may be held instead.
    bool may_hold(uint32_t call) const;

    uint32_t first() const { return begin_; }
    uint32_t last() const { return end_; }
    // Returns whether a value is held, by the plan for this scope or for later scopes.
    bool is_held(uint32_t v) const { return crosses_[v] || (held_[v] && uses_[v]); }
    template <class Visit>
    void each_held(Visit visit) const
    {
        for (uint32_t v = first_value_; v < last_value_; ++v)
            if (is_held(v)) visit(v);
    }
    // Visits values of earlier scopes that recomputed calls read.
    template <class Visit>
    void each_request(Visit visit) const
    {
        for (uint32_t i = begin_; i < end_; ++i)
            if (needed_[i])
                for (const uint32_t v : profile_.reads(i))
                    if (profile_.values[v].maker < begin_) visit(v);
    }

private:
    bool is_inside(uint32_t v) const { return profile_.values[v].maker >= begin_; }
    bool is_saved(uint32_t v) const { return profile_.values[v].first_saver < end_; }
    // Returns whether recomputed calls read the value. A held source stays to the end of the scope.
    bool is_source(uint32_t v) const { return uses_[v] > is_saved(v); }
    bool makes_anything(uint32_t call) const;
    void drop_unneeded(uint32_t call);
    template <class Visit>
    void each_value(Visit visit) const;
    int64_t most_in_forward() const;
    int64_t most_in_replay(uint32_t trigger) const;
    int64_t most_in_backward() const;
    uint32_t trigger() const;

    const Profile &profile_;
    uint32_t begin_ = 0, end_ = 0;
    std::vector<uint8_t> crosses_, held_, needed_;  // by value, by value, by call
    std::vector<uint32_t>
        uses_;  // by value: needed calls reading the value, nodes keeping the value
    std::vector<uint32_t> dropped_;              // calls, by the last drop_unneeded()
    uint32_t first_value_ = 0, last_value_ = 0;  // range of the segment's values
    mutable std::vector<int64_t> steps_;         // by call: by how much the live bytes change there
    mutable std::vector<uint32_t> left_;         // by value: uses to come
};

}  // namespace yoke
