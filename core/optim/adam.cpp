#include "core/optim/adam.h"

#include "core/ops/ops.h"

namespace yoke {

namespace {

enum AdamSlot { kExpAvg, kExpAvgSq, kStep, kAdamMaster, kAdamSlotCount };
constexpr const char *kAdamSlots[kAdamSlotCount] = {"exp_avg", "exp_avg_sq", "step", "master"};

}  // namespace

std::span<const char *const> Adam::state_names() const noexcept
{
    return kAdamSlots;
}

void Adam::check(const AdamOptions &options) const
{
    check_common(options, kind());
    check_number(options.eps, kind(), "eps");
    for (const double beta : {options.beta1, options.beta2})
        if (!(beta >= 0 && beta < 1))
            fail(YOKE_E_VALUE, "%s: option 'betas' is (%g, %g); both must be in [0, 1)", kind(),
                 options.beta1, options.beta2);
}

Adam::Adam(const AdamOptions &defaults, bool decoupled)
    : OptimizerOf(defaults), decoupled_(decoupled)
{
    check(defaults);
}

void Adam::launch(const Batch &batch)
{
    const AdamOptions &o = options_[batch.group];
    const auto step = decoupled_ ? ops::adamw : ops::adam;
    step(batch.params, batch.grads, batch.states[kExpAvg], batch.states[kExpAvgSq],
         batch.states[kStep], batch.states[kAdamMaster], batch.found_inf, o.lr, o.beta1, o.beta2,
         o.eps, o.weight_decay);
}

}  // namespace yoke
