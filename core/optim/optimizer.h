// optimizer.h: what every optimizer shares: groups of parameters, each with options, and state for each parameter.
//
// A step reads the gradients that the leaves hold, changes the parameters in place outside the tape, and is one launch a
// group. Parameters without a gradient stay as they are.
#pragma once

#include "core/tensor/tensor.h"

#include <string_view>
#include <vector>

struct yoke_optimizer : public yoke::RefCounted {
    virtual size_t group_count() const = 0;
    // Raises YOKE_E_INDEX for a group or index that is not there.
    virtual const std::vector<yoke::Tensor> &params(int64_t group) const = 0;
    virtual void step() = 0;
    virtual double lr(int64_t group) const = 0;
    virtual void set_lr(int64_t group, double lr) = 0;  // -1: every group
    // The named state tensor of a parameter; null before there is any.
    virtual yoke::Tensor state(int64_t group, int64_t index, std::string_view name) const = 0;
    virtual void set_state(int64_t group, int64_t index, std::string_view name,
                           const yoke_tensor *value) = 0;

    void zero_grad(bool set_to_none);
};

namespace yoke {

// start + (end - start) * step / total, held at both ends.
double schedule_linear(double start, double end, int64_t total_steps, int64_t step) noexcept;

}  // namespace yoke
