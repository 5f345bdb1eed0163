#include "core/ops/function_node.h"

#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/ops/family.h"
#include "core/ops/ops.h"
#include "core/ops/views.h"

#include <algorithm>
#include <utility>

namespace yoke {

FunctionNode::FunctionNode(const FunctionCall &call)
    : name_(call.name),
      body_(call.body),
      gives_zeros_(call.gives_zeros),
      saved_(remember_all(call.saved, true)),
      inputs_(remember_all(call.inputs, false)),
      outputs_(remember_all(call.outputs, false))
{
    for (const yoke_tensor *x : call.inputs)
        edges_.push_back(x && x->requires_grad()
                             ? Edge{Ref<Node>::share(node_of(*x)), x->output_index}
                             : Edge{});
    for (const Kept &each : saved_) counted_ += each.tensor.storage.present();
    if (counted_) count_kept_tensors(counted_);
}

FunctionNode::~FunctionNode()
{
    if (counted_) count_kept_tensors(-counted_);
}

std::vector<FunctionNode::Kept> FunctionNode::remember_all(TensorList tensors, bool with_data)
{
    std::vector<Kept> all(tensors.size());
    for (size_t i = 0; i < tensors.size(); ++i) {
        const yoke_tensor *x = tensors[i];
        if (!x) continue;
        all[i].dims = std::make_unique<int64_t[]>(2 * static_cast<size_t>(x->ndim));
        int64_t *dims = all[i].dims.get();
        remember(all[i].tensor, x, with_data, dims);
    }
    return all;
}

void FunctionNode::release_saved() noexcept
{
    if (saved_.empty()) return;
    if (gate_.close()) drop_saved();
    if (NodeNotes *mine = notes()) mine->drop_hooks();
}

void FunctionNode::leave() noexcept
{
    if (gate_.leave()) drop_saved();
}

void FunctionNode::drop_saved() noexcept
{
    if (const int counted = std::exchange(counted_, 0)) count_kept_tensors(-counted);
    for (Kept &each : saved_) {
        each.tensor.storage = nullptr;
        each.tensor.slot = {};
    }
}

std::vector<Tensor> FunctionNode::restore_saved()
{
    struct Leave {
        FunctionNode &node;
        ~Leave() { node.leave(); }
    };
    const bool is_open = gate_.enter();
    const Leave leave{*this};
    if (!is_open)
        fail(
            YOKE_E_STATE,
            "backward: the graph through '%s' was freed by an earlier backward; call the earlier backward with retain_graph, or run the forward again",
            name());
    std::vector<Tensor> restored;
    for (const Kept &each : saved_) {
        restored.push_back(each.tensor.restore(name()));
        if (each.tensor.present)
            each.tensor.check_unchanged(name(),
                                        format("saved tensor %zu", restored.size() - 1).c_str());
    }
    return restored;
}

// Returns the gradient as the input has to get it: another floating dtype is cast, broadcast axes are summed.
Tensor FunctionNode::fitting(size_t input, Tensor gradient) const
{
    const Remembered &x = inputs_[input].tensor;
    const IntList shape{x.dims, static_cast<size_t>(x.ndim)}, given = gradient->shape();
    bool fits = is_floating(gradient->dtype) && gradient->device == x.device &&
                given.size() >= shape.size();
    for (size_t i = 0; fits && i < shape.size(); ++i)
        fits = shape[i] == given[given.size() - shape.size() + i] || shape[i] == 1;
    if (!fits)
        fail(
            is_floating(gradient->dtype) ? YOKE_E_VALUE : YOKE_E_TYPE,
            "backward of %s returned %s as the gradient of input %zu, but the input was %s %s on %s; return a floating tensor of the input's shape and device",
            name(), describe(*gradient).c_str(), input, to_string(shape).c_str(),
            yoke::name(x.dtype), x.device->name.c_str());
    gradient = sum_to(gradient, shape);
    return gradient->dtype == x.dtype ? gradient : ops::cast(gradient, x.dtype);
}

void FunctionNode::backward(std::span<Tensor> gradients, std::span<Tensor> out)
{
    const std::vector<Tensor> saved = restore_saved();
    if (gives_zeros_)
        for (size_t i = 0; i < gradients.size(); ++i)
            if (const Remembered &output = outputs_[i].tensor; !gradients[i].present())
                gradients[i] = ops::zeros({output.dims, static_cast<size_t>(output.ndim)},
                                          output.dtype, output.device);
    std::vector<yoke_tensor *> read, given;
    for (const Tensor &each : saved) read.push_back(each.get());
    for (const Tensor &each : gradients) given.push_back(each.get());
    std::vector<Tensor> made(edges_.size());
    {
        const ProgramTurn turn;
        body_->backward(name(), read, given, made);
    }
    for (size_t i = 0; i < made.size(); ++i) {
        if (!made[i].present() || !edges_[i].node.present()) continue;
        // The program may keep its tensor, and a leaf changes its own gradient in place.
        if (std::ranges::find(given, made[i].get()) == given.end())
            made[i] = own_gradient(std::move(made[i]));
        out[i] = fitting(i, std::move(made[i]));
    }
}

// ---- Recording -----------------------------------------------------------------------------------------------

// Raises unless the function may have changed this input in place.
static void check_written(const FunctionCall &call, size_t output)
{
    const yoke_tensor *x = call.outputs[output];
    if (std::ranges::find(call.inputs, x) == call.inputs.end())
        fail(
            YOKE_E_VALUE,
            "%s: output %zu is marked as changed in place, but it is none of the inputs; mark only inputs that forward also returns",
            call.name, output);
    if (x->requires_grad() && is_leaf(*x))
        fail(
            YOKE_E_STATE,
            "%s: output %zu is a leaf that requires grad and cannot change in place while the tape records; change a clone() instead",
            call.name, output);
    check_written_view(call.name, "output", *x);
}

// Returns whether the call gets a node.
static bool is_recorded(const FunctionCall &call)
{
    if (!grad_enabled()) return false;
    bool wanted = false;
    for (const yoke_tensor *x : call.inputs) {
        if (!x) continue;
        renew_view(call.name, *x);
        wanted |= x->requires_grad();
    }
    return wanted;
}

// Returns another tensor of the output's memory, without history. It counts as a view if an input has the memory.
static Tensor renamed(const yoke_tensor &output, TensorList inputs)
{
    Tensor made = alias(output);
    made->is_view = std::ranges::any_of(inputs, [&](const yoke_tensor *x) {
        return x && x->storage.get() == output.storage.get();
    });
    return made;
}

std::vector<Tensor> record_function(const FunctionCall &call)
{
    const bool records = is_recorded(call);
    for (size_t i = 0; records && i < call.outputs.size(); ++i)
        if (call.kinds[i] == FunctionCall::kWritten) check_written(call, i);
    Ref<FunctionNode> node;
    if (records) node = Ref<FunctionNode>::adopt(new FunctionNode(call));
    if (records) note_line(*node);
    std::vector<Tensor> results;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
        yoke_tensor &output = *call.outputs[i];
        const auto index = static_cast<uint32_t>(i);
        const bool is_written = call.kinds[i] == FunctionCall::kWritten;
        results.push_back(is_written ? Tensor::share(&output) : renamed(output, call.inputs));
        if (!records || call.kinds[i] == FunctionCall::kConstant || !is_floating(output.dtype))
            continue;
        if (is_written)
            record_write(output, node, index);
        else
            set_node(*results.back(), node, index);
    }
    return results;
}

}  // namespace yoke
