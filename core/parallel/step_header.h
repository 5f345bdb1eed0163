// step_header.h: the small all_reduce that opens each backward of a module.
#pragma once

#include "core/comm/group.h"
#include "core/parallel/step_terms.h"

#include <cstdint>
#include <span>
#include <vector>

namespace yoke {

// Numbers that all ranks tell each other as a backward opens: which parameters a rank uses, its weight, whether it is
// in a join, and which modules it goes back through. The thread of the backward alone uses a header, so it has no lock.
class StepHeader {
public:
    // The module has `params` parameters, and the number `module` in its group.
    StepHeader(Group &group, size_t params, int64_t module, const StepTerms &terms);

    // Gives this rank's part to the group, and returns at once. `next` is the number of the module behind this one in
    // the same backward, or 0.
    void send(const std::vector<bool> &uses, int64_t next);
    // Waits for all ranks. Raises YOKE_E_STATE, alike on all ranks, if ranks go back through unlike modules, or if some
    // ranks are in a join and others are not.
    void receive();
    bool has_come() const noexcept { return has_come_; }

    // After receive:
    bool is_used(size_t param) const { return used_[param] > 0; }  // by any rank
    // Returns the number that makes the gradient of a rank of that weight its part of the mean. It multiplies a
    // gradient before the compression, so that neither the compression's state nor a 16-bit float depends on the unit
    // of weights. Raises YOKE_E_VALUE if the weights together are not finite.
    double factor(double weight) const;
    double heaviest() const noexcept { return heaviest_; }  // of the ranks' weights
    int32_t root() const noexcept { return root_; }         // first rank with data; -1: all are out

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
    std::vector<double> used_;  // by parameter, how many ranks use it; then all weights together
    double heaviest_ = 0;
    bool is_even_ = false;  // all weights are equal
    int32_t root_ = -1;
};

}  // namespace yoke
