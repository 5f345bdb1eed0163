// op_node.h: the tape node of an op call, and the view of a vjp on the call.
//
// A node keeps the call's arguments. It keeps shape, strides and dtype of each tensor, but memory only if the op's
// line in ops.def says that the vjp reads the memory. Backward makes the tensors anew from these data. Reading the
// data of a tensor without kept memory is a defect, found by the op tests.
#pragma once

#include "core/autograd/node.h"
#include "core/base/read_gate.h"
#include "core/ops/op_def.h"
#include "core/ops/recompute/recording.h"

namespace yoke {

// Tensor as a node remembers it.
struct Remembered {
    Ref<Storage> storage;  // null, and no slot: shape and dtype only
    Slot slot;             // slot of a recording that can recompute the memory
    Device *device;
    int64_t offset;  // in bytes, of the first element from the beginning of its storage
    int64_t *dims;   // shape, then strides
    uint32_t version;
    yoke_dtype dtype;
    int16_t ndim;
    bool present;

    bool is_kept() const { return storage.present() || slot.present(); }
    // Returns the tensor, null if absent. The memory is recomputed for `reader` if needed.
    Tensor restore(const char *reader) const;
    // Returns the memory's present version; last_writer returns the last op that wrote the memory.
    uint32_t version_now() const;
    const char *last_writer() const;
    // Raises YOKE_E_STATE if the memory has changed since it was remembered. `which` names the tensor for messages.
    void check_unchanged(const char *reader, const char *which) const;
};

// Fills `slot` with what a node remembers of x; null: an absent tensor. Shape and strides go to `dims`, which moves
// behind them. With data, the slot holds the memory, or a slot of the thread's checkpoint scope.
void remember(Remembered &slot, const yoke_tensor *x, bool with_data, int64_t *&dims);

class OpNode final : public Node {
public:
    // Records a call. `tensors` are the call's tensors in launch order, lists laid out in place, absent tensors null;
    // `needs` has a bit for each argument that wants a gradient.
    static Ref<OpNode> make(const OpDef &op, const yoke_arg *args, TensorList tensors,
                            std::span<const Tensor> results, uint32_t needs);

    const char *name() const noexcept override { return op_.name; }
    int output_count() const noexcept override
    {
        return op_.mut_result >= 0 ? 1 : op_.result_count;
    }
    std::span<const Edge> edges() const noexcept override
    {
        return {edges_, static_cast<size_t>(tensor_count_)};
    }
    const Edge *casts_f32() const noexcept override;
    const char *edge_name(size_t edge) const noexcept override;
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override;
    void release_saved() noexcept override;

    // Visits the tensors kept for the gradient: visit(name of the argument or result, tensor as remembered).
    template <class Visit>
    void each_saved(Visit visit) const;

private:
    friend class Backward;
    friend struct NodeLayout;
    OpNode(const OpDef &op, size_t bytes) : op_(op), bytes_(bytes) {}
    ~OpNode() override;
    void free_node() noexcept override;
    void drop_saved() noexcept;

    // Access to the node's saved tensors, which another thread may release meanwhile.
    class Reading {
    public:
        explicit Reading(const OpNode &node)
            : node_(const_cast<OpNode &>(node)), good_(node_.gate_.enter())
        {
        }
        ~Reading()
        {
            if (node_.gate_.leave()) node_.drop_saved();
        }
        Reading(const Reading &) = delete;
        Reading &operator=(const Reading &) = delete;
        explicit operator bool() const { return good_; }

    private:
        OpNode &node_;
        const bool good_;
    };

    const OpDef &op_;
    const size_t bytes_;  // bytes of the whole block: the node, then the arrays below
    yoke_arg *args_ = nullptr;
    Edge *edges_ = nullptr;
    Remembered *remembered_ = nullptr;  // tensors, then results
    int tensor_count_ = 0;
    int result_count_ = 0;
    bool saves_ = false;  // keeps the memory of a tensor
    // Number of tensors whose memory counts as alive, without memory recomputed by a checkpoint scope.
    int counted_ = 0;
    ReadGate gate_;  // before the memory that is kept
};

template <class Visit>
void OpNode::each_saved(Visit visit) const
{
    const Reading reading(*this);
    if (!reading) return;
    int next = 0;
    for (int i = 0; i < op_.arg_count; ++i) {
        if (!is_tensor_type(op_.args[i].type)) continue;
        const int items = is_list_type(op_.args[i].type) ? args_[i].count : 1;
        for (int k = 0; k < items; ++k, ++next)
            if (remembered_[next].is_kept()) visit(op_.args[i].name, remembered_[next]);
    }
    for (int k = 0; k < result_count_; ++k, ++next)
        if (remembered_[next].is_kept()) visit("out", remembered_[next]);
}

// View of a vjp on its call: gradients of the results come out, gradients of the arguments go in.
class Backward {
public:
    // Returns the gradient of a result; of an op with several results it may be absent.
    const Tensor &grad(int result = 0) const { return gradients_[static_cast<size_t>(result)]; }
    // Returns a result of the forward call, if the op saves it.
    const yoke_tensor &out(int result = 0) const
    {
        return *restored_[static_cast<size_t>(node_.tensor_count_ + result)];
    }
    // Returns whether argument `arg` (item `item` of a list) wants a gradient.
    bool needs(int arg, int item = 0) const { return node_.edges_[slot(arg, item)].node.present(); }
    // Returns whether the gradient of a half argument may also be float32: autocast has cast the argument.
    bool takes_f32(int arg) const;
    // Returns the gradient of the leaf behind such an argument, if the vjp may add its gradient there, in place of
    // set(); else null. The gradient is float32, row-major, and shares no memory with the tensors to read.
    Tensor leaf_gradient(int arg, std::initializer_list<const yoke_tensor *> read) const;
    void set(int arg, Tensor gradient) { set(arg, 0, std::move(gradient)); }
    void set(int arg, int item, Tensor gradient);
    const char *name() const { return node_.name(); }

private:
    friend class OpNode;
    Backward(OpNode &node, std::span<Tensor> gradients, std::span<Tensor> out);
    const Edge &edge(int arg) const { return node_.edges_[slot(arg, 0)]; }
    int slot(int arg, int item) const { return first_slot_[arg] + item; }
    void check_unchanged(int index, const char *which) const;

    OpNode &node_;
    std::span<Tensor> gradients_, out_;
    int first_slot_[kMaxArgs];
    yoke_arg args_[kMaxArgs];
    std::vector<Tensor> restored_;
    std::vector<yoke_tensor *> lists_;
};

}  // namespace yoke
