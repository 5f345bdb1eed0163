#include "core/ops/op_node.h"

#include "core/autograd/backward.h"
#include "core/autograd/notes.h"
#include "core/base/pool.h"
#include "core/ops/args.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/replay.h"
#include "core/ops/recompute/scope.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

namespace yoke {

namespace {

// ---- Ops called by the tape itself -------------------------------------------------------------------------------

std::unique_ptr<WalkState> begin_walk()
{
    return std::make_unique<Replays>();
}
void add_in_place(yoke_tensor &x, const yoke_tensor &y)
{
    ops::add_(x, y);
}
Tensor add_new(const yoke_tensor &x, const yoke_tensor &y)
{
    return ops::add(x, y);
}
Tensor ones(const yoke_tensor &x)
{
    return ops::ones_like(x);
}

bool has_nan(const yoke_tensor &x)
{
    if (!x.numel) return false;
    bool found = false;
    copy_to_host(ops::any(ops::isnan(x)), &found, sizeof found, "backward");
    return found;
}

}  // namespace

const TapeOps tape_ops = {begin_walk, add_in_place, add_new, ops::clone, ones, has_nan};

// ---- nodes ----------------------------------------------------------------------------------------------------------

void remember(Remembered &slot, const yoke_tensor *x, bool with_data, int64_t *&dims)
{
    slot.present = x != nullptr;
    if (!x) return;
    slot.device = x->device;
    slot.dtype = x->dtype;
    slot.ndim = x->ndim;
    slot.dims = dims;
    std::copy_n(x->shape_, x->ndim, dims);
    std::copy_n(x->strides_, x->ndim, dims + x->ndim);
    dims += 2 * x->ndim;
    if (!with_data) return;
    slot.offset = x->data - static_cast<char *>(x->storage->data);
    slot.version = x->storage->version.load(std::memory_order_relaxed);
    if (Scope *scope = Scope::of_thread()) [[unlikely]]
        slot.slot = scope->slot_for(*x);
    if (!slot.slot.present()) slot.storage = x->storage;
}

// Places of a node's arrays in the node's block of memory.
struct NodeLayout {
    size_t args, edges, remembered, dims, ints, strings, bytes;

    NodeLayout(const OpDef &op, const yoke_arg *a, TensorList tensors,
               std::span<const Tensor> results)
    {
        size_t dim_count = 0, int_count = 0, string_bytes = 0;
        for (const yoke_tensor *x : tensors) dim_count += x ? 2 * static_cast<size_t>(x->ndim) : 0;
        for (const Tensor &x : results) dim_count += 2 * static_cast<size_t>(x->ndim);
        for (int i = 0; i < op.arg_count; ++i) {
            int_count += a[i].kind == YOKE_ARG_INTS ? static_cast<size_t>(a[i].count) : 0;
            string_bytes += a[i].kind == YOKE_ARG_STRING ? strlen(a[i].v.string) + 1 : 0;
        }
        args = pool_aligned(sizeof(OpNode));
        edges = args + pool_aligned(sizeof(yoke_arg) * static_cast<size_t>(op.arg_count));
        remembered = edges + pool_aligned(sizeof(Edge) * tensors.size());
        dims = remembered + pool_aligned(sizeof(Remembered) * (tensors.size() + results.size()));
        ints = dims + sizeof(int64_t) * dim_count;
        strings = ints + sizeof(int64_t) * int_count;
        bytes = strings + string_bytes;
    }

    // Copies the call's arguments, with their lists and strings.
    void copy_args(const OpDef &op, const yoke_arg *from, char *block, yoke_arg *to) const
    {
        auto *int_list = reinterpret_cast<int64_t *>(block + ints);
        char *text = block + strings;
        for (int i = 0; i < op.arg_count; ++i) {
            to[i] = from[i];
            if (from[i].kind == YOKE_ARG_INTS) {
                std::copy_n(from[i].v.ints, from[i].count, int_list);
                to[i].v.ints = int_list;
                int_list += from[i].count;
            } else if (from[i].kind == YOKE_ARG_STRING) {
                to[i].v.string = text;
                text = stpcpy(text, from[i].v.string) + 1;
            }
        }
    }
};

Tensor Remembered::restore(const char *reader) const
{
    if (!present) return nullptr;
    Tensor x = Tensor::adopt(new yoke_tensor(static_cast<size_t>(ndim)));
    x->device = device;
    x->dtype = dtype;
    std::copy_n(dims, ndim, x->shape_);
    std::copy_n(dims + ndim, ndim, x->strides_);
    x->numel = 1;
    for (const int64_t size : x->shape()) x->numel *= size;
    x->contiguous = is_contiguous(x->shape(), x->strides_);
    if (slot.present()) {
        // A tensor changed since then is not recomputed: the caller raises the error.
        if (version_now() != version) return x;
        x->storage = Replays::of_thread().take(slot, reader);
    } else {
        x->storage = storage;
    }
    if (x->storage.present()) x->data = static_cast<char *>(x->storage->data) + offset;
    return x;
}

uint32_t Remembered::version_now() const
{
    return slot.present() ? slot.value().version.load(std::memory_order_relaxed)
                          : storage->version.load(std::memory_order_relaxed);
}

const char *Remembered::last_writer() const
{
    return slot.present() ? slot.value().last_writer.load(std::memory_order_relaxed)
                          : storage->last_writer();
}

void Remembered::check_unchanged(const char *reader, const char *which) const
{
    if (!is_kept() || version_now() == version) return;
    const char *writer = last_writer();
    fail(
        YOKE_E_STATE,
        "backward of %s needs '%s' as it was, but %s has changed it in place since (version %u, saved at %u); change a clone() instead",
        reader, which, writer ? writer : "the host", version_now(), version);
}

Ref<OpNode> OpNode::make(const OpDef &op, const yoke_arg *args, TensorList tensors,
                         std::span<const Tensor> results, uint32_t needs)
{
    const NodeLayout layout(op, args, tensors, results);
    char *block = static_cast<char *>(pool_alloc(layout.bytes));
    auto *node = new (block) OpNode(op, layout.bytes);
    Ref<OpNode> made = Ref<OpNode>::adopt(node);
    node->args_ = reinterpret_cast<yoke_arg *>(block + layout.args);
    node->edges_ = reinterpret_cast<Edge *>(block + layout.edges);
    node->remembered_ = reinterpret_cast<Remembered *>(block + layout.remembered);
    layout.copy_args(op, args, block, node->args_);

    uint32_t saves = 0;
    for (int i = 0; i < op.arg_count; ++i)
        if (needs >> i & 1) saves |= op.saves[i];
    auto *dims = reinterpret_cast<int64_t *>(block + layout.dims);
    for (int i = 0; i < op.arg_count; ++i) {
        const int items =
            is_list_type(op.args[i].type) ? args[i].count : is_tensor_type(op.args[i].type);
        for (int k = 0; k < items; ++k) {
            // Counted at once: later steps may run out of memory.
            const int at = node->tensor_count_++;
            Remembered &slot = *new (&node->remembered_[at]) Remembered{};
            Edge &edge = *new (&node->edges_[at]) Edge{};
            const yoke_tensor *x = tensors[static_cast<size_t>(at)];
            remember(slot, x, saves >> i & 1, dims);
            if (x && x->requires_grad()) edge = {Ref<Node>::share(node_of(*x)), x->output_index};
        }
    }
    for (const Tensor &x : results) {
        const int k = node->result_count_++;
        Remembered &slot = *new (&node->remembered_[node->tensor_count_ + k]) Remembered{};
        remember(slot, x.get(), saves >> (16 + k) & 1, dims);
    }
    for (int i = 0; i < node->tensor_count_ + node->result_count_; ++i) {
        node->saves_ |= node->remembered_[i].is_kept();
        node->counted_ += node->remembered_[i].storage.present();
    }
    if (node->counted_) count_kept_tensors(node->counted_);
    note_line(*node);
    return made;
}

OpNode::~OpNode()
{
    if (counted_) count_kept_tensors(-counted_);
    for (int i = 0; i < tensor_count_; ++i) edges_[i].~Edge();
    for (int i = 0; i < tensor_count_ + result_count_; ++i) remembered_[i].~Remembered();
}

void OpNode::free_node() noexcept
{
    const size_t bytes = bytes_;
    this->~OpNode();
    pool_free(this, bytes);
}

void OpNode::release_saved() noexcept
{
    // A node that kept nothing has lost nothing, and may be walked again. An example is the cast of a weight, walked
    // by every product with this cast.
    if (!saves_) return;
    if (gate_.close()) drop_saved();
    if (NodeNotes *mine = notes()) [[unlikely]]
        mine->drop_hooks();
}

void OpNode::drop_saved() noexcept
{
    if (const int counted = std::exchange(counted_, 0)) count_kept_tensors(-counted);
    for (int i = 0; i < tensor_count_ + result_count_; ++i) {
        remembered_[i].storage = nullptr;
        remembered_[i].slot = {};
    }
}

const Edge *OpNode::casts_f32() const noexcept
{
    if (&op_ != &kOps[YOKE_OP_CAST] || remembered_[0].dtype != YOKE_F32) return nullptr;
    return is_half(remembered_[1].dtype) ? &edges_[0] : nullptr;
}

const char *OpNode::edge_name(size_t edge) const noexcept
{
    size_t next = 0;
    for (int i = 0; i < op_.arg_count; ++i) {
        if (!is_tensor_type(op_.args[i].type)) continue;
        next += is_list_type(op_.args[i].type) ? static_cast<size_t>(args_[i].count) : 1;
        if (edge < next) return op_.args[i].name;
    }
    return "";
}

void OpNode::backward(std::span<Tensor> gradients, std::span<Tensor> out)
{
    Backward b(*this, gradients, out);
    op_.vjp(b.args_, b);
}

Backward::Backward(OpNode &node, std::span<Tensor> gradients, std::span<Tensor> out)
    : node_(node), gradients_(gradients), out_(out)
{
    const int count = node.tensor_count_ + node.result_count_;
    restored_.resize(static_cast<size_t>(count));
    lists_.resize(static_cast<size_t>(count));
    // From here on the walk holds all tensors to read, whatever other threads do with the node.
    const OpNode::Reading reading(node);
    if (!reading)
        fail(
            YOKE_E_STATE,
            "backward: the graph through '%s' was freed by an earlier backward; call the earlier backward with retain_graph, or run the forward again",
            name());
    for (size_t i = 0; i < restored_.size(); ++i)
        restored_[i] = node.remembered_[i].restore(name());
    int next = 0;
    for (int i = 0; i < node.op_.arg_count; ++i) {
        const ArgSpec &spec = node.op_.args[i];
        args_[i] = node.args_[i];
        first_slot_[i] = next;
        if (!is_tensor_type(spec.type)) continue;
        const int items = is_list_type(spec.type) ? args_[i].count : 1;
        for (int k = 0; k < items; ++k) check_unchanged(next + k, spec.name);
        for (int k = 0; k < items; ++k)
            lists_[static_cast<size_t>(next + k)] = restored_[static_cast<size_t>(next + k)].get();
        if (is_list_type(spec.type))
            args_[i].v.tensors = &lists_[static_cast<size_t>(next)];
        else if (args_[i].kind == YOKE_ARG_TENSOR)
            args_[i].v.tensor = lists_[static_cast<size_t>(next)];
        next += items;
    }
    for (int k = 0; k < node.result_count_; ++k)
        check_unchanged(node.tensor_count_ + k, "its result");
}

void Backward::check_unchanged(int index, const char *which) const
{
    const Remembered &remembered = node_.remembered_[index];
    if (restored_[static_cast<size_t>(index)].present()) remembered.check_unchanged(name(), which);
}

bool Backward::takes_f32(int arg) const
{
    return needs(arg) && Replays::of_thread().edges->takes_f32(edge(arg));
}

Tensor Backward::leaf_gradient(int arg, std::initializer_list<const yoke_tensor *> read) const
{
    Tensor found = Replays::of_thread().edges->leaf_gradient(edge(arg));
    if (!found.present() || found->dtype != YOKE_F32 || !found->contiguous) return nullptr;
    for (const yoke_tensor *x : read)
        if (shares_memory(*found, *x)) return nullptr;
    return found;
}

void Backward::set(int arg, int item, Tensor gradient)
{
    const int s = slot(arg, item);
    if (!node_.edges_[s].node.present()) return;
    const Remembered &input = node_.remembered_[s];
    const IntList shape{input.dims, static_cast<size_t>(input.ndim)};
    const bool fits = !gradient.present() || gradient->dtype == input.dtype ||
                      (gradient->dtype == YOKE_F32 && takes_f32(arg));
    if (!fits || (gradient.present() && !same(gradient->shape(), shape)))
        fail(YOKE_E_INTERNAL,
             "backward of %s: the gradient of '%s' is %s, but the argument was %s %s", name(),
             node_.op_.args[arg].name, describe(*gradient).c_str(), to_string(shape).c_str(),
             yoke::name(input.dtype));
    out_[static_cast<size_t>(s)] = std::move(gradient);
}

}  // namespace yoke
