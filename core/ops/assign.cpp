#include "core/ops/assign.h"

#include "core/autograd/node.h"
#include "core/ops/graph.h"
#include "core/ops/move.h"

namespace yoke {

namespace {

void check_assignable(const yoke_tensor &x, const yoke_tensor &data, const char *call)
{
    if (!is_leaf(x))
        fail(
            YOKE_E_STATE,
            "%s: the tensor %s was made by %s, and only a leaf can take other data; write x = data",
            call, describe(x).c_str(), node_of(x)->name());
    if (!same(x.shape(), data.shape()))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'data' has shape %s, but the tensor has shape %s; give data of the tensor's shape, or create a new tensor",
            call, to_string(data.shape()).c_str(), to_string(x.shape()).c_str());
    if (x.node.present() && !is_floating(data.dtype))
        fail(
            YOKE_E_TYPE,
            "%s: argument 'data' has dtype %s, but the tensor %s collects a gradient; give data of a floating dtype",
            call, name(data.dtype), describe(x).c_str());
}

}  // namespace

void assign_data(yoke_tensor &x, const yoke_tensor &data, const char *call)
{
    check_assignable(x, data, call);
    const NoGrad no_grad;
    const NoAutocast no_autocast;
    const Uncaptured at_once;  // a leaf's memory must not belong to a graph
    const bool is_other = x.dtype != data.dtype || x.device != data.device;
    const Tensor held = is_other ? grad_of(x, call) : nullptr;
    const Tensor grad =
        held.present() ? convert_to(*held, *data.device, data.dtype, false) : nullptr;
    const auto left = x.storage;
    replace_data(x, data, grad.get());
    if (left.get() != x.storage.get()) Graph::note_left(left.get());
}

}  // namespace yoke
