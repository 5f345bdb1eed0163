#include "core/optim/sgd.h"

#include "core/autograd/node.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace yoke {

namespace {

constexpr const char *kCall = "SGD";

void check_number(double value, const char *name)
{
    if (!(value >= 0) || std::isinf(value))
        fail(YOKE_E_VALUE, "%s: option '%s' is %g; it must be a finite number of at least 0", kCall,
             name, value);
}

// Memory for one parameter's state, laid out as the parameter is where that has no gaps.
Tensor make_state(const yoke_tensor &param)
{
    const bool dense = byte_range(param).bytes == param.nbytes();
    return make_strided(*param.device, param.dtype, param.shape(), dense ? param.strides_ : nullptr,
                        kCall);
}

void check_param(const yoke_tensor &param, size_t index)
{
    if (!is_leaf(param) || !param.requires_grad())
        fail(YOKE_E_STATE,
             "%s: parameter %zu, %s, is not a leaf that requires grad; call requires_grad_(true) "
             "on it, and "
             "give the tensor itself rather than a result computed from it",
             kCall, index, describe(param).c_str());
}

}  // namespace

void check_options(const SgdOptions &options)
{
    check_number(options.lr, "lr");
    check_number(options.momentum, "momentum");
    check_number(options.weight_decay, "weight_decay");
    if (options.nesterov && options.momentum == 0)
        fail(YOKE_E_VALUE,
             "%s: option 'nesterov' is set but 'momentum' is 0; Nesterov's variant needs momentum",
             kCall);
}

Sgd::Sgd(const SgdOptions &defaults) : defaults_(defaults)
{
    check_options(defaults);
}

void Sgd::add_group(TensorList params, const SgdOptions &options)
{
    check_options(options);
    if (params.empty())
        fail(YOKE_E_VALUE, "%s: the list of parameters is empty; give at least one", kCall);
    Group group{options, {}, {}};
    for (size_t i = 0; i < params.size(); ++i) {
        yoke_tensor &param = *params[i];
        check_param(param, i);
        const auto is_known = [&param](const Tensor &other) {
            return other->node.get() == param.node.get();
        };
        bool known = std::any_of(group.params.begin(), group.params.end(), is_known);
        for (const Group &other : groups_)
            known |= std::any_of(other.params.begin(), other.params.end(), is_known);
        if (known)
            fail(YOKE_E_VALUE,
                 "%s: parameter %zu, %s, is already in a group; name each parameter once", kCall, i,
                 describe(param).c_str());
        if (param.device != params[0]->device)
            fail(YOKE_E_VALUE,
                 "%s: parameter %zu is on %s, parameter 0 on %s; make a group for each device",
                 kCall, i, param.device->name.c_str(), params[0]->device->name.c_str());
        group.params.push_back(Tensor::share(&param));
    }
    group.momenta.resize(group.params.size());
    groups_.push_back(std::move(group));
}

void Sgd::set_options(int64_t group, const SgdOptions &options)
{
    check_options(options);
    at(group).options = options;
}

void Sgd::set_lr(int64_t group, double lr)
{
    check_number(lr, "lr");
    if (group != -1)
        at(group).options.lr = lr;
    else
        for (Group &each : groups_) each.options.lr = lr;
}

const Sgd::Group &Sgd::at(int64_t group) const
{
    if (group < 0 || static_cast<size_t>(group) >= groups_.size())
        fail(YOKE_E_INDEX, "%s: group %lld is not there; the optimizer has %zu", kCall,
             static_cast<long long>(group), groups_.size());
    return groups_[static_cast<size_t>(group)];
}

size_t Sgd::slot(int64_t group, int64_t index, std::string_view name) const
{
    const Group &each = at(group);
    if (index < 0 || static_cast<size_t>(index) >= each.params.size())
        fail(YOKE_E_INDEX, "%s: group %lld has no parameter %lld; it has %zu", kCall,
             static_cast<long long>(group), static_cast<long long>(index), each.params.size());
    if (name != "momentum")
        fail(YOKE_E_VALUE, "%s: no state is called \"%s\"; there is \"momentum\"", kCall,
             std::string(name).c_str());
    return static_cast<size_t>(index);
}

Tensor Sgd::state(int64_t group, int64_t index, std::string_view name) const
{
    return at(group).momenta[slot(group, index, name)];
}

void Sgd::set_state(int64_t group, int64_t index, std::string_view name, const yoke_tensor *value)
{
    const size_t i = slot(group, index, name);
    Group &each = at(group);
    const yoke_tensor &param = each.params[i];
    if (value && (value->dtype != param.dtype || !same(value->shape(), param.shape())))
        fail(value->dtype != param.dtype ? YOKE_E_TYPE : YOKE_E_VALUE,
             "%s: the momentum is %s, its parameter %s; they must agree", kCall,
             describe(*value).c_str(), describe(param).c_str());
    NoGrad no_grad;
    Tensor copy = value ? make_state(param) : Tensor();
    if (value) ops::copy_(copy, *value);
    each.momenta[i] = std::move(copy);
}

void Sgd::step()
{
    NoGrad no_grad;
    // First steps of some parameters are steps of their own: they set the momentum instead of adding to it. They come
    // last, since they leave a momentum behind by which the other call would take them for its own.
    for (Group &group : groups_) {
        step_group(group, false);
        if (group.options.momentum != 0) step_group(group, true);
    }
}

void Sgd::step_group(Group &group, bool first)
{
    const bool has_momentum = group.options.momentum != 0;
    std::vector<Tensor> grads, fresh;
    std::vector<size_t> chosen;
    std::vector<yoke_tensor *> params, grad_list, momenta;
    for (size_t i = 0; i < group.params.size(); ++i) {
        yoke_tensor &param = group.params[i];
        if (has_momentum && group.momenta[i].present() == first) continue;
        Tensor grad = grad_of(param, "SGD.step");
        if (!grad.present()) continue;
        chosen.push_back(i);
        params.push_back(&param);
        grad_list.push_back(grads.emplace_back(std::move(grad)).get());
        if (has_momentum)
            momenta.push_back(first ? fresh.emplace_back(make_state(param)).get()
                                    : group.momenta[i].get());
    }
    if (params.empty()) return;
    const SgdOptions &o = group.options;
    ops::sgd(params, grad_list, momenta, o.lr, o.momentum, o.weight_decay, o.nesterov, first);
    // Only now: a step that failed must not leave momenta behind that nobody has written.
    for (size_t k = 0; k < fresh.size(); ++k) group.momenta[chosen[k]] = std::move(fresh[k]);
}

}  // namespace yoke
