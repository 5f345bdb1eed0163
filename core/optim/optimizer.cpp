#include "core/optim/optimizer.h"

#include "core/autograd/node.h"
#include "core/base/log.h"
#include "core/ops/graph.h"
#include "core/ops/move.h"
#include "core/ops/ops.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

using namespace yoke;

void yoke_optimizer::zero_grad(bool set_to_none)
{
    NoGrad no_grad;
    for (const Group &group : groups_)
        for (const Tensor &param : group.params) {
            if (set_to_none) {
                set_grad_of(param, nullptr, "zero_grad");
                continue;
            }
            const Tensor grad = grad_of(param, "zero_grad");
            if (grad.present()) ops::fill_(grad, int64_t{0});
        }
}

// ---- Groups ------------------------------------------------------------------------------------------

void yoke_optimizer::check_number(double value, const char *kind, const char *name)
{
    if (!(value >= 0) || std::isinf(value))
        fail(YOKE_E_VALUE, "%s: option '%s' is %g; it must be a finite number of at least 0", kind,
             name, value);
}

void yoke_optimizer::check_common(const CommonOptions &options, const char *kind)
{
    check_number(options.lr, kind, "lr");
    check_number(options.weight_decay, kind, "weight_decay");
}

void yoke_optimizer::check_masters_stay(size_t group, bool master_weights) const
{
    if (master_weights != common(group).master_weights)
        fail(
            YOKE_E_VALUE,
            "%s: option 'master_weights' of group %zu cannot change; give it when the group is added",
            kind(), group);
}

void yoke_optimizer::check_param(const yoke_tensor &param, size_t index, TensorList params) const
{
    if (!is_floating(param.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: parameter %zu, %s, is not floating and has no gradient; leave it out, or cast it to float32",
            kind(), index, describe(param).c_str());
    if (!is_leaf(param))
        fail(
            YOKE_E_STATE,
            "%s: parameter %zu, %s, is the result of an op and gets no gradient of its own; give the tensors that it is computed from",
            kind(), index, describe(param).c_str());
    // A tensor that requires no grad may have no node; each step leaves out the tensors without a gradient.
    const auto is_known = [&param](const yoke_tensor *other) {
        return other == &param || (param.node.present() && other->node.get() == param.node.get());
    };
    bool known =
        std::any_of(params.begin(), params.begin() + static_cast<int64_t>(index), is_known);
    for (const Group &other : groups_)
        for (const Tensor &each : other.params) known |= is_known(each.get());
    if (known)
        fail(YOKE_E_VALUE, "%s: parameter %zu, %s, is already in a group; name each parameter once",
             kind(), index, describe(param).c_str());
    if (const int axis = expanded_axis(param); axis >= 0)
        fail(
            YOKE_E_VALUE,
            "%s: parameter %zu, %s, is expanded: axis %d has %lld elements in one place of memory; clone() it first",
            kind(), index, describe(param).c_str(), axis,
            static_cast<long long>(param.shape_[axis]));
    if (param.device != params[0]->device)
        fail(YOKE_E_VALUE,
             "%s: parameter %zu is on %s, parameter 0 on %s; make a group for each device", kind(),
             index, param.device->name.c_str(), params[0]->device->name.c_str());
}

void yoke_optimizer::add_params(TensorList params)
{
    if (params.empty())
        fail(YOKE_E_VALUE, "%s: the list of parameters is empty; give at least one", kind());
    Group group;
    for (size_t i = 0; i < params.size(); ++i) {
        check_param(*params[i], i, params);
        group.params.push_back(Tensor::share(params[i]));
    }
    for (std::vector<Tensor> &states : group.states) states.resize(params.size());
    groups_.push_back(std::move(group));
}

size_t yoke_optimizer::index_of(int64_t group) const
{
    if (group < 0 || static_cast<size_t>(group) >= groups_.size())
        fail(YOKE_E_INDEX, "%s: there is no group %lld; the optimizer has %zu groups", kind(),
             static_cast<long long>(group), groups_.size());
    return static_cast<size_t>(group);
}

void yoke_optimizer::set_lr(int64_t group, double lr)
{
    check_number(lr, kind(), "lr");
    if (group != -1)
        common(index_of(group)).lr = lr;
    else
        for (size_t i = 0; i < groups_.size(); ++i) common(i).lr = lr;
}

// ---- State -------------------------------------------------------------------------------------------

bool yoke_optimizer::has_master(size_t group, const yoke_tensor &param) const
{
    return common(group).master_weights && (param.dtype == YOKE_F16 || param.dtype == YOKE_BF16);
}

bool yoke_optimizer::is_step(size_t slot) const
{
    return std::string_view(state_names()[slot]) == "step";
}

// Returns a tensor for a parameter's state, without values. "step" is a float32 scalar. Any other state has the
// parameter's shape, and its layout if the parameter is dense.
Tensor yoke_optimizer::layout_of_state(size_t group, const yoke_tensor &param, size_t slot) const
{
    if (is_step(slot)) return make_tensor(*param.device, YOKE_F32, {}, kind());
    return make_like(param, has_master(group, param) ? YOKE_F32 : param.dtype, kind());
}

// Returns the state before the first step: a master is a copy of the parameter, every other state is 0.
Tensor yoke_optimizer::make_state(size_t group, const yoke_tensor &param, size_t slot) const
{
    const Uncaptured at_once;  // in a graph each replay would start anew
    Tensor state = layout_of_state(group, param, slot);
    if (slot == master_slot())
        ops::copy_(state, param);
    else
        ops::fill_(state, int64_t{0});
    return state;
}

size_t yoke_optimizer::slot_of(std::string_view name) const
{
    const auto names = state_names();
    for (size_t slot = 0; slot < names.size(); ++slot)
        if (name == names[slot]) return slot;
    std::string known;
    for (const char *each : names)
        known += (known.empty() ? "\"" : ", \"") + std::string(each) + '"';
    fail(YOKE_E_VALUE, "%s: there is no state \"%s\"; the states are %s", kind(),
         std::string(name).c_str(), known.c_str());
}

size_t yoke_optimizer::checked_index(int64_t group, int64_t index) const
{
    const size_t count = at(group).params.size();
    if (index < 0 || static_cast<size_t>(index) >= count)
        fail(YOKE_E_INDEX, "%s: group %lld has no parameter %lld; it has %zu parameters", kind(),
             static_cast<long long>(group), static_cast<long long>(index), count);
    return static_cast<size_t>(index);
}

Tensor yoke_optimizer::state(int64_t group, int64_t index, std::string_view name) const
{
    const size_t i = checked_index(group, index);
    return following(index_of(group), i, slot_of(name));
}

// Returns the state on the parameter's device, converted if the parameter has moved. "step" and states beside a
// master are float32, others have the parameter's dtype. Returns null if there is no state, and for a master that the
// parameter no longer needs.
Tensor yoke_optimizer::following(size_t group, size_t index, size_t slot) const
{
    const Tensor &known = groups_[group].states[slot][index];
    const yoke_tensor &param = *groups_[group].params[index];
    if (!known.present() || (slot == master_slot() && !has_master(group, param))) return nullptr;
    const bool is_float32 = is_step(slot) || has_master(group, param);
    const yoke_dtype dtype = is_float32 ? YOKE_F32 : param.dtype;
    if (known->dtype == dtype && known->device == param.device) return known;
    const NoGrad no_grad;
    const Uncaptured at_once;
    return convert_to(*known, *param.device, dtype, false);
}

// Returns a copy of `value` as a state of the parameter. Raises YOKE_E_TYPE or VALUE if dtype or shape do not fit, or
// the parameter has no master. A "step" must be a whole number of at least 0.
Tensor yoke_optimizer::copy_of_state(int64_t group, int64_t index, size_t slot,
                                     const yoke_tensor &value) const
{
    const size_t g = index_of(group);
    const yoke_tensor &param = *groups_[g].params[static_cast<size_t>(index)];
    const std::string place =
        "parameter " + std::to_string(index) + " of group " + std::to_string(group);
    if (slot == master_slot() && !has_master(g, param))
        fail(
            YOKE_E_VALUE,
            "load_state_dict: %s of this %s, %s, has no master copy; remove \"master\" from its state",
            place.c_str(), kind(), describe(param).c_str());
    Tensor copy = layout_of_state(g, param, slot);
    if (value.dtype != copy->dtype || !same(value.shape(), copy->shape()))
        fail(value.dtype != copy->dtype ? YOKE_E_TYPE : YOKE_E_VALUE,
             "load_state_dict: the state \"%s\" of %s of this %s is %s, but must be %s",
             state_names()[slot], place.c_str(), kind(), describe(value).c_str(),
             describe(*copy).c_str());
    ops::copy_(copy, value);
    if (!is_step(slot)) return copy;
    float steps = 0;
    copy_to_host(value, &steps, sizeof steps, "load_state_dict");
    if (!(steps >= 0) || std::isinf(steps) || steps != std::floor(steps))
        fail(
            YOKE_E_VALUE,
            "load_state_dict: the state \"step\" of %s of this %s is %g; it counts steps, and must be a finite whole number of at least 0; give the saved value",
            place.c_str(), kind(), static_cast<double>(steps));
    return copy;
}

void yoke_optimizer::set_state(int64_t group, int64_t index, std::string_view name,
                               const yoke_tensor *value)
{
    const size_t i = checked_index(group, index), slot = slot_of(name);
    NoGrad no_grad;
    Tensor copy;
    if (value) copy = copy_of_state(group, index, slot, *value);
    groups_[index_of(group)].states[slot][i] = std::move(copy);
}

void yoke_optimizer::set_states(const std::vector<std::vector<std::vector<Tensor>>> &values)
{
    NoGrad no_grad;
    has_stepped_ = true;
    std::vector<std::vector<std::vector<Tensor>>> copies = values;
    for (size_t g = 0; g < copies.size(); ++g)
        for (size_t i = 0; i < copies[g].size(); ++i)
            for (size_t slot = 0; slot < copies[g][i].size(); ++slot)
                if (Tensor &each = copies[g][i][slot]; each.present())
                    each = copy_of_state(static_cast<int64_t>(g), static_cast<int64_t>(i), slot,
                                         *each);
    for (size_t g = 0; g < copies.size(); ++g)
        for (size_t i = 0; i < copies[g].size(); ++i)
            for (size_t slot = 0; slot < copies[g][i].size(); ++slot)
                groups_[g].states[slot][i] = std::move(copies[g][i][slot]);
}

// ---- A step ------------------------------------------------------------------------------------------

// Returns a state of a parameter. Makes the state if there is none yet, and converts it if the parameter has moved;
// the group gets the new tensor after the launch.
yoke_tensor *yoke_optimizer::state_of(Batch &batch, size_t slot, size_t index) const
{
    const Group &group = groups_[batch.group];
    Tensor state = following(batch.group, index, slot);
    if (state.get() == group.states[slot][index].get() && state.present()) return state.get();
    if (!state.present()) state = make_state(batch.group, group.params[index], slot);
    batch.fresh.push_back({slot, index, std::move(state)});
    return batch.fresh.back().tensor.get();
}

void yoke_optimizer::add_states(Batch &batch, size_t index) const
{
    yoke_tensor &param = groups_[batch.group].params[index];
    const unsigned needed = needed_states(batch.group);
    for (size_t slot = 0; slot <= master_slot(); ++slot) {
        const bool is_master = slot == master_slot();
        if (is_master ? !common(batch.group).master_weights : !(needed >> slot & 1u)) continue;
        const bool is_own_master = is_master && !has_master(batch.group, param);
        // An old master would undo later steps if it served again.
        if (is_own_master && groups_[batch.group].states[slot][index].present())
            batch.fresh.push_back({slot, index, nullptr});
        batch.states[slot].push_back(is_own_master ? &param : state_of(batch, slot, index));
    }
}

// Raises if parameters have moved to several devices: a launch works on a single device.
void yoke_optimizer::check_device(const Batch &batch) const
{
    for (const yoke_tensor *param : batch.params)
        if (param->device != batch.params[0]->device)
            fail(
                YOKE_E_VALUE,
                "%s: group %zu has the parameter %s beside %s; move all parameters of a group to one device",
                kind(), batch.group, describe(*param).c_str(), describe(*batch.params[0]).c_str());
}

bool yoke_optimizer::collect(size_t group, Batch &batch) const
{
    batch.group = group;
    const std::vector<Tensor> &params = groups_[group].params;
    for (size_t i = 0; i < params.size(); ++i) {
        Tensor grad = grad_of(params[i], "step");
        if (!grad.present()) continue;
        batch.params.push_back(params[i].get());
        batch.grads.push_back(grad.get());
        batch.held.push_back(std::move(grad));
        add_states(batch, i);
    }
    check_device(batch);
    return !batch.params.empty();
}

void yoke_optimizer::note_schedule_step() noexcept
{
    if (has_stepped_ || std::exchange(has_said_order_, true)) return;
    log(LogLevel::kWarn,
        "schedule: step() was called before the first step() of its %s, so the first learning rate is never used; call optimizer.step() before schedule.step()",
        kind());
}

void yoke_optimizer::step(std::span<const Tensor> found_infs)
{
    NoGrad no_grad;
    has_stepped_ = true;
    // All allocations come first, so that a failed step has changed nothing.
    std::vector<Batch> batches;
    batches.reserve(groups_.size());
    for (size_t group = 0; group < groups_.size(); ++group)
        if (!collect(group, batches.emplace_back())) batches.pop_back();
    for (Batch &batch : batches) {
        for (const Tensor &found : found_infs)
            if (found->device == batch.params[0]->device) batch.found_inf = found.get();
        launch(batch);
        for (Batch::Fresh &fresh : batch.fresh)
            groups_[batch.group].states[fresh.slot][fresh.index] = std::move(fresh.tensor);
    }
}
