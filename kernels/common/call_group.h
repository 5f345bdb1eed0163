// Calls of a communicator between group_begin and group_end.
//
// Contract: compiled in the baseline instruction set. One thread at a time.
#pragma once

#include <vector>

#include "kernels/common/collective.h"

namespace yoke::kernels {

// Calls that wait for the end of the outermost group. Then the group runs the calls in order.
class CallGroup {
public:
    bool is_open() const { return depth_ > 0; }
    void begin() { ++depth_; }
    // Ends the innermost group. Returns whether this was the outermost group, so the caller runs the calls now.
    bool end() { return --depth_ == 0; }

    // Calls run(&call, 1) and returns its status, outside of a group. In a group, keeps copies of the call and
    // its signature, so the caller may change both, and returns YOKE_OK. Raises std::bad_alloc.
    template <class Run>
    yoke_status pass(const yoke_collective &call, const Run &run)
    {
        if (!is_open()) return run(&call, 1);
        signatures_.push_back(*call.signature);
        calls_.push_back(call);
        return YOKE_OK;
    }
    // Returns the fault record of the first call; null if there are no calls, or if the call has no record.
    yoke_comm_fault *first_fault() const { return calls_.empty() ? nullptr : calls_[0].fault; }

    // Calls run(calls, count) for all calls in order, up to the first failure, and returns its status or YOKE_OK. The
    // fault of a failure is copied to all calls. Consecutive messages pass together, so two ranks may both send
    // before either rank receives. Each other call passes alone, because all ranks make these calls in the same
    // order.
    template <class Run>
    yoke_status run_all(const Run &run)
    {
        for (size_t i = 0; i < calls_.size(); ++i) calls_[i].signature = &signatures_[i];
        for (size_t i = 0, count; i < calls_.size(); i += count) {
            count = together_at(i);
            const yoke_status status = run(&calls_[i], count);
            if (!status) continue;
            for (const yoke_collective &one : calls_)
                if (one.fault && calls_[i].fault) *one.fault = *calls_[i].fault;
            return status;
        }
        return YOKE_OK;
    }
    void clear()
    {
        calls_.clear();
        signatures_.clear();
    }

private:
    // Returns how many calls from number i on pass together.
    size_t together_at(size_t i) const
    {
        size_t next = i + 1;
        if (is_message(calls_[i].op))
            while (next < calls_.size() && is_message(calls_[next].op)) ++next;
        return next - i;
    }

    int depth_ = 0;
    std::vector<yoke_collective> calls_;
    std::vector<yoke_comm_signature> signatures_;  // signatures of the calls, in order
};

}  // namespace yoke::kernels
