#include "yoke/autograd.h"

#include "capi/src/guard.h"
#include "capi/src/structs.h"
#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/ops/assign.h"
#include "core/ops/function_node.h"
#include "core/ops/op_node.h"
#include "core/ops/ops.h"
#include "core/ops/views.h"

#include <algorithm>
#include <utility>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Returns the tensor with its present history, which a write into its base may have changed.
yoke_tensor &renewed(yoke_tensor &x, const char *call)
{
    renew_view(short_name(call), x);
    return x;
}

}  // namespace

int32_t yoke_set_grad_enabled(int32_t enabled)
{
    return guard_value("yoke_set_grad_enabled", -1,
                       [&] { return set_grad_enabled(enabled != 0) ? 1 : 0; });
}

int32_t yoke_is_grad_enabled(void)
{
    return grad_enabled() ? 1 : 0;
}

int32_t yoke_tensor_requires_grad(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_requires_grad";
    return guard_value(call, -1, [&] {
        return renewed(need(tensor, call, "tensor"), call).requires_grad() ? 1 : 0;
    });
}

yoke_status yoke_tensor_set_requires_grad(yoke_tensor *tensor, int32_t required)
{
    constexpr const char *call = "yoke_tensor_set_requires_grad";
    return guard(call, [&] {
        set_requires_grad(renewed(need(tensor, call, "tensor"), call), required != 0);
    });
}

int32_t yoke_tensor_is_leaf(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_is_leaf";
    return guard_value(
        call, -1, [&] { return is_leaf(renewed(need(tensor, call, "tensor"), call)) ? 1 : 0; });
}

yoke_status yoke_tensor_detach(yoke_tensor *tensor, yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_detach";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(alias(need(tensor, call, "tensor")));
    });
}

yoke_status yoke_tensor_set_data(yoke_tensor *tensor, yoke_tensor *data)
{
    constexpr const char *call = "yoke_tensor_set_data";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        assign_data(x, need(data, call, "data"), "data");
    });
}

namespace {

template <class Visit>
void each_saved(const yoke_tensor &x, Visit visit)
{
    Node *const node = result_of(x).node;
    if (const auto *op = dynamic_cast<const OpNode *>(node))
        op->each_saved([&](const char *argument, const Remembered &saved) {
            visit(op->name(), argument, saved);
        });
    else if (auto *function = dynamic_cast<FunctionNode *>(node))
        function->each_saved(
            [&](const Remembered &saved) { visit(function->name(), "saved", saved); });
}

yoke_saved describe_saved(const char *op, const char *argument, const Remembered &saved)
{
    auto nbytes = static_cast<int64_t>(item_size(saved.dtype));
    for (int i = 0; i < saved.ndim; ++i) nbytes *= saved.dims[i];
    yoke_saved told{};
    told.struct_size = sizeof told;
    told.dtype = saved.dtype;
    told.op = op;
    told.argument = argument;
    told.shape = saved.dims;
    told.ndim = saved.ndim;
    told.nbytes = nbytes;
    told.recomputed = saved.slot.present() && !saved.slot.item().held.present();
    return told;
}

}  // namespace

int64_t yoke_tensor_saved_count(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_saved_count";
    return guard_value(call, int64_t{-1}, [&] {
        int64_t count = 0;
        each_saved(need(tensor, call, "tensor"),
                   [&](const char *, const char *, const Remembered &) { ++count; });
        return count;
    });
}

yoke_status yoke_tensor_saved(yoke_tensor *tensor, int64_t index, yoke_saved *out)
{
    constexpr const char *call = "yoke_tensor_saved";
    return guard(call, [&] {
        int64_t next = 0;
        yoke_saved found{};
        each_saved(need(tensor, call, "tensor"),
                   [&](const char *op, const char *argument, const Remembered &saved) {
                       if (next++ == index) found = describe_saved(op, argument, saved);
                   });
        if (!found.op)
            fail(
                YOKE_E_INDEX,
                "%s: argument 'index' is %lld, but the record keeps %lld tensors of this op; give a lower number",
                short_name(call), static_cast<long long>(index), static_cast<long long>(next));
        write_struct(out, found, call, "out");
    });
}

yoke_status yoke_backward(yoke_tensor *tensor, yoke_tensor *gradient, int32_t retain_graph)
{
    constexpr const char *call = "yoke_backward";
    return guard(call, [&] {
        yoke_tensor *const roots[] = {&renewed(need(tensor, call, "tensor"), call)};
        yoke_tensor *const weights[] = {object_of(gradient, call, "gradient")};
        backward(roots, weights, retain_graph != 0);
    });
}

yoke_status yoke_backward_note_refused(yoke_tensor *tensor, const char *why)
{
    constexpr const char *call = "yoke_backward_note_refused";
    return guard(call, [&] {
        yoke_tensor *const roots[] = {&need(tensor, call, "tensor")};
        refuse_backward(roots, &need(why, call, "why"));
    });
}

namespace {

// Tensors of a call of backward or grad, with their present history.
Tensors need_renewed(yoke_tensor *const *items, int64_t count, const char *call,
                     const char *argument)
{
    Tensors tensors = need_tensors(items, count, call, argument);
    for (yoke_tensor *one : TensorList(tensors)) renewed(*one, call);
    return tensors;
}

Tensors need_outputs(yoke_tensor *const *outputs, int64_t count, const char *call)
{
    Tensors roots = need_renewed(outputs, count, call, "outputs");
    if (roots.empty())
        fail(YOKE_E_VALUE, "%s: argument 'outputs' is empty; give at least one tensor",
             short_name(call));
    return roots;
}

yoke_status grads_of(yoke_tensor *const *outputs, int64_t count, yoke_tensor *const *gradients,
                     yoke_tensor *const *inputs, int64_t input_count, int32_t retain_graph,
                     int32_t allow_unused, yoke_tensor **grads, const char *call)
{
    return guard(call, [&] {
        const auto places = need_list(grads, input_count, call, "grads");
        std::fill(places.begin(), places.end(), nullptr);
        const auto roots = need_outputs(outputs, count, call);
        const auto wanted = need_renewed(inputs, input_count, call, "inputs");
        const Tensors weights(gradients, gradients ? count : 0, call, "gradients", true);
        std::vector<Tensor> found =
            yoke::gradients(roots, weights, wanted, retain_graph != 0, allow_unused != 0);
        for (size_t i = 0; i < places.size(); ++i) places[i] = hand_out(std::move(found[i]));
    });
}

}  // namespace

yoke_status yoke_grad(yoke_tensor *const *outputs, int64_t count, yoke_tensor *const *gradients,
                      yoke_tensor *const *inputs, int64_t input_count, int32_t retain_graph,
                      yoke_tensor **grads)
{
    return grads_of(outputs, count, gradients, inputs, input_count, retain_graph, 0, grads,
                    "yoke_grad");
}

yoke_status yoke_grad_v2(yoke_tensor *const *outputs, int64_t count, yoke_tensor *const *gradients,
                         yoke_tensor *const *inputs, int64_t input_count, int32_t retain_graph,
                         int32_t allow_unused, yoke_tensor **grads)
{
    return grads_of(outputs, count, gradients, inputs, input_count, retain_graph, allow_unused,
                    grads, "yoke_grad_v2");
}

yoke_status yoke_backward_v2(yoke_tensor *const *outputs, int64_t count,
                             yoke_tensor *const *gradients, yoke_tensor *const *inputs,
                             int64_t input_count, int32_t retain_graph)
{
    constexpr const char *call = "yoke_backward_v2";
    return guard(call, [&] {
        const auto roots = need_outputs(outputs, count, call);
        const auto wanted = need_renewed(inputs, input_count, call, "inputs");
        const Tensors weights(gradients, gradients ? count : 0, call, "gradients", true);
        if (wanted.empty())
            backward(roots, weights, retain_graph != 0);
        else
            backward_to(roots, weights, wanted, retain_graph != 0);
    });
}

yoke_status yoke_tensor_grad(yoke_tensor *tensor, yoke_tensor **out)
{
    constexpr const char *call = "yoke_tensor_grad";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(grad_of(need(tensor, call, "tensor"), short_name(call)));
    });
}

yoke_status yoke_tensor_set_grad(yoke_tensor *tensor, yoke_tensor *grad)
{
    constexpr const char *call = "yoke_tensor_set_grad";
    return guard(call, [&] {
        set_grad_of(need(tensor, call, "tensor"), object_of(grad, call, "grad"), short_name(call));
    });
}

yoke_status yoke_tensor_zero_grad(yoke_tensor *tensor, int32_t set_to_none)
{
    constexpr const char *call = "yoke_tensor_zero_grad";
    return guard(call, [&] {
        yoke_tensor &x = need(tensor, call, "tensor");
        if (set_to_none) return set_grad_of(x, nullptr, short_name(call));
        const NoGrad no_grad;
        if (Tensor grad = grad_of(x, short_name(call)); grad.present())
            ops::fill_(*grad, int64_t{0});
    });
}

yoke_status yoke_tensor_retain_grad(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_retain_grad";
    return guard(
        call, [&] { retain_grad(renewed(need(tensor, call, "tensor"), call), short_name(call)); });
}

int32_t yoke_tensor_retains_grad(yoke_tensor *tensor)
{
    constexpr const char *call = "yoke_tensor_retains_grad";
    return guard_value(call, -1,
                       [&] { return retains_grad(need(tensor, call, "tensor")) ? 1 : 0; });
}

int32_t yoke_set_detect_anomaly(int32_t mode)
{
    constexpr const char *call = "yoke_set_detect_anomaly";
    return guard_value(call, -1, [&] {
        if (mode < kNoAnomaly || mode > kChecks)
            fail(YOKE_E_VALUE,
                 "%s: argument 'mode' is %d; it must be a YOKE_ANOMALY_* number, 0 to 2",
                 short_name(call), mode);
        return std::exchange(thread_state().anomaly, mode);
    });
}

int32_t yoke_get_detect_anomaly(void)
{
    const ThreadState *state = known_thread_state();
    return state ? state->anomaly : kNoAnomaly;
}
