#include "core/optim/optimizer.h"

#include "core/autograd/node.h"
#include "core/ops/ops.h"

#include <algorithm>

void yoke_optimizer::zero_grad(bool set_to_none)
{
    yoke::NoGrad no_grad;
    for (size_t group = 0; group < group_count(); ++group)
        for (const yoke::Tensor &param : params(static_cast<int64_t>(group))) {
            const yoke::Tensor grad = yoke::grad_of(param, "zero_grad");
            if (set_to_none)
                yoke::set_grad_of(param, nullptr, "zero_grad");
            else if (grad.present())
                yoke::ops::fill_(grad, int64_t{0});
        }
}

namespace yoke {

double schedule_linear(double start, double end, int64_t total_steps, int64_t step) noexcept
{
    if (total_steps <= 0) return end;
    const double done =
        std::clamp(static_cast<double>(step) / static_cast<double>(total_steps), 0.0, 1.0);
    return start + (end - start) * done;
}

}  // namespace yoke
