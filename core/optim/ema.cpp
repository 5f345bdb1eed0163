#include "core/optim/ema.h"

#include "core/autograd/node.h"
#include "core/ops/graph.h"
#include "core/ops/move.h"
#include "core/ops/ops.h"

#include <algorithm>

using namespace yoke;

namespace {

constexpr const char *kCall = "EMA";

void check_param(const yoke_tensor &param, size_t index, const yoke_tensor &first)
{
    if (!is_floating(param.dtype))
        fail(YOKE_E_TYPE, "%s: parameter %zu, %s, is not floating; leave it out", kCall, index,
             describe(param).c_str());
    if (param.device != first.device)
        fail(YOKE_E_VALUE,
             "%s: parameter %zu is on %s, parameter 0 on %s; make an average for each device",
             kCall, index, param.device->name.c_str(), first.device->name.c_str());
}

yoke_dtype dtype_for(const yoke_tensor &param)
{
    return param.dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
}

void check_decay(double decay, const char *call)
{
    if (!(decay >= 0 && decay <= 1))
        fail(YOKE_E_VALUE, "%s: argument 'decay' is %g; it must be in [0, 1]", call, decay);
}

std::vector<yoke_tensor *> pointers(const std::vector<Tensor> &tensors)
{
    std::vector<yoke_tensor *> list(tensors.size());
    std::ranges::transform(tensors, list.begin(), &Tensor::get);
    return list;
}

}  // namespace

yoke_ema::yoke_ema(TensorList params, double decay) : decay_(decay)
{
    check_decay(decay, kCall);
    if (params.empty())
        fail(YOKE_E_VALUE, "%s: the list of parameters is empty; give at least one", kCall);
    NoGrad no_grad;
    for (size_t i = 0; i < params.size(); ++i) {
        const yoke_tensor &param = *params[i];
        check_param(param, i, *params[0]);
        Tensor average = make_like(param, dtype_for(param), kCall);
        ops::copy_(average, param);
        params_.push_back(Tensor::share(params[i]));
        averages_.push_back(std::move(average));
    }
}

// Raises YOKE_E_STATE, with the reason `why`, between two swaps: the averages then stand in the place of the
// parameters.
void yoke_ema::need_own_values(const char *call, const char *why) const
{
    if (!kept_.empty())
        fail(
            YOKE_E_STATE,
            "%s: the averages are in the place of the parameters, so %s; put the parameters back first (leave applied(), or swap once more)",
            call, why);
}

// Moves averages to the device of their parameters, and to the dtype for them. Raises if the parameters are now on
// several devices.
void yoke_ema::follow_params()
{
    const Uncaptured at_once;
    for (size_t i = 0; i < params_.size(); ++i) {
        const yoke_tensor &param = *params_[i];
        check_param(param, i, *params_[0]);
        averages_[i] = convert_to(*averages_[i], *param.device, dtype_for(param), false);
    }
}

void yoke_ema::update()
{
    need_own_values("EMA.update", "an update would average them with themselves");
    NoGrad no_grad;
    follow_params();
    ops::lerp_all(pointers(averages_), pointers(params_), 1 - decay_);
}

void yoke_ema::copy_to_params()
{
    need_own_values("EMA.copy_to_params", "the next swap would undo the copy");
    put_averages();
}

void yoke_ema::put_averages()
{
    NoGrad no_grad;
    for (size_t i = 0; i < params_.size(); ++i) ops::copy_(params_[i], averages_[i]);
}

void yoke_ema::swap()
{
    NoGrad no_grad;
    if (kept_.empty()) {
        std::vector<Tensor> before;  // all clones first: a shortage of memory must change nothing
        for (const Tensor &param : params_) before.push_back(ops::clone(param));
        put_averages();
        kept_ = std::move(before);
    } else {
        for (size_t i = 0; i < params_.size(); ++i) ops::copy_(params_[i], kept_[i]);
        kept_.clear();
    }
}

const Tensor &yoke_ema::average(int64_t index) const
{
    if (index < 0 || static_cast<size_t>(index) >= averages_.size())
        fail(YOKE_E_INDEX, "EMA: there is no average %lld; there are %zu averages",
             static_cast<long long>(index), averages_.size());
    return averages_[static_cast<size_t>(index)];
}

void yoke_ema::load(double decay, const std::vector<Tensor> &averages)
{
    constexpr const char *call = "load_state_dict";
    need_own_values(call, "the loaded averages would be lost");
    check_decay(decay, call);
    if (averages.size() != averages_.size())
        fail(YOKE_E_VALUE, "%s: the state has %zu averages, but there are %zu parameters", call,
             averages.size(), averages_.size());
    NoGrad no_grad;
    std::vector<Tensor> copies;
    for (size_t i = 0; i < averages.size(); ++i) {
        if (!std::ranges::equal(averages[i]->shape(), averages_[i]->shape()))
            fail(YOKE_E_VALUE,
                 "%s: average %zu is %s, but parameter %zu is %s; their shapes must agree", call, i,
                 describe(*averages[i]).c_str(), i, describe(*params_[i]).c_str());
        if (!is_floating(averages[i]->dtype))
            fail(YOKE_E_TYPE, "%s: average %zu is %s, which is not floating", call, i,
                 describe(*averages[i]).c_str());
        copies.push_back(make_like(*averages_[i], averages_[i]->dtype, call));
        ops::copy_(copies.back(), averages[i]);
    }
    averages_ = std::move(copies);
    decay_ = decay;
}
