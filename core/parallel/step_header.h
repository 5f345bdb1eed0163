// step_header.h: the small all_reduce that opens each backward of a module.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/step_terms.h"

#include <cstdint>
#include <span>
#include <vector>

namespace yoke {

// Numbers exchanged by all ranks when a backward opens: used parameters, the weight, whether a rank is in a join, and
// the modules of its backward. Only the thread of the backward uses a header, so the header has no lock.
class StepHeader {
public:
    // Makes a header of the module with `params` parameters, and the number `module` in its group.
    StepHeader(Group &group, size_t params, int64_t module, const StepTerms &terms);

    // Gives this rank's numbers to the group, and returns at once. `next` is the number of the next module in the
    // same backward, or 0.
    void send(const std::vector<bool> &uses, int64_t next);
    // Waits for all ranks. Raises YOKE_E_STATE, alike on all ranks, if ranks go back through unlike modules, or if
    // some ranks are in a join and others are not.
    void receive();
    bool has_come() const noexcept { return has_come_; }

    // Returns whether any rank uses the parameter. This function and the functions below need a receive before.
    bool is_used(size_t param) const { return used_[param] > 0; }
    // Returns the factor for gradients of a rank with this weight; the scaled gradients give the mean. Gradients are
    // multiplied before the compression, so neither the compression's state nor a 16-bit float depends on the unit of
    // weights. Raises YOKE_E_VALUE if the sum of weights is not finite.
    double factor(double weight) const;
    double heaviest() const noexcept { return heaviest_; }  // largest weight of a rank
    int32_t root() const noexcept { return root_; }         // first rank with data; -1: no rank

private:
    int64_t spot(int64_t next) const noexcept;
    std::vector<int64_t> take_spots(std::span<const double> told) const;
    void check_presences(std::span<const int64_t> presences) const;
    double weight_of_all() const noexcept { return used_.back(); }

    Group &group_;
    const size_t params_;
    const int64_t module_;
    const StepTerms terms_;
    Tensor shared_;
    Ref<Work> sharing_;
    bool has_come_ = false;
    std::vector<double> used_;  // by parameter, the number of users; last, the sum of weights
    double heaviest_ = 0;
    bool is_even_ = false;  // all weights are equal
    int32_t root_ = -1;
};

}  // namespace yoke
