#include "core/optim/sgd.h"

#include "core/ops/ops.h"

namespace yoke {

namespace {

enum Slot { kMomentum, kMaster, kSlots };
constexpr const char *kNames[kSlots] = {"momentum", "master"};

}  // namespace

std::span<const char *const> Sgd::state_names() const noexcept
{
    return kNames;
}

void Sgd::check(const SgdOptions &options)
{
    check_common(options, "SGD");
    check_number(options.momentum, "SGD", "momentum");
    if (options.nesterov && options.momentum == 0)
        fail(
            YOKE_E_VALUE,
            "SGD: option 'nesterov' is set but 'momentum' is 0; Nesterov's variant needs momentum");
}

Sgd::Sgd(const SgdOptions &defaults) : defaults_(defaults)
{
    check(defaults);
}

void Sgd::add_group(TensorList params, const SgdOptions &options)
{
    check(options);
    options_.reserve(options_.size() + 1);
    add_params(params);
    options_.push_back(options);
}

void Sgd::set_options(int64_t group, const SgdOptions &options)
{
    const size_t i = index_of(group);
    check(options);
    check_masters_stay(i, options.master_weights);
    options_[i] = options;
}

void Sgd::launch(const Batch &batch)
{
    const SgdOptions &o = options_[batch.group];
    ops::sgd(batch.params, batch.grads, batch.states[kMomentum], batch.states[kMaster],
             batch.found_inf, o.lr, o.momentum, o.weight_decay, o.nesterov);
}

}  // namespace yoke
