#include "core/optim/sgd.h"

#include "core/ops/ops.h"

namespace yoke {

namespace {

enum SgdSlot { kSgdMomentum, kSgdMaster, kSgdSlotCount };
constexpr const char *kSgdSlots[kSgdSlotCount] = {"momentum", "master"};

}  // namespace

std::span<const char *const> Sgd::state_names() const noexcept
{
    return kSgdSlots;
}

void Sgd::check(const SgdOptions &options) const
{
    check_common(options, "SGD");
    check_number(options.momentum, "SGD", "momentum");
    if (options.nesterov && options.momentum == 0)
        fail(YOKE_E_VALUE,
             "SGD: option 'nesterov' is set but 'momentum' is 0; give 'momentum' above 0");
}

Sgd::Sgd(const SgdOptions &defaults) : OptimizerOf(defaults)
{
    check(defaults);
}

void Sgd::launch(const Batch &batch)
{
    const SgdOptions &o = options_[batch.group];
    ops::sgd(batch.params, batch.grads, batch.states[kSgdMomentum], batch.states[kSgdMaster],
             batch.found_inf, o.lr, o.momentum, o.weight_decay, o.nesterov);
}

}  // namespace yoke
