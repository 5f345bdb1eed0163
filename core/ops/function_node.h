// function_node.h: functions of the program with a backward of their own, recorded as a single node.
//
// The program computes the outputs without recording, then records the call. Tensors saved for backward are kept as
// an op keeps its own: their versions are checked, a checkpoint scope recomputes them, and the walk frees them.
#pragma once

#include "core/ops/op_node.h"

#include <memory>
#include <string>
#include <vector>

namespace yoke {

// Backward of a function, called in the thread of each walk with no lock held. Its end may run code of the program.
class FunctionBody : public RefCounted {
public:
    // Fills `out`, an empty entry for each input, from the gradients of the outputs. A missing gradient means zero.
    // `name` is the function's, for messages.
    virtual void backward(const char *name, TensorList saved, TensorList gradients,
                          std::span<Tensor> out) = 0;
};

// Call of a function, to be recorded.
struct FunctionCall {
    // How an output takes part in gradients.
    enum Output : int32_t {
        kFresh = 0,   // gets a gradient if its dtype is floating
        kConstant,    // gets no gradient
        kWritten,     // one of the inputs, whose memory the function has changed in place
        kOutputKinds  // number of the kinds
    };
    const char *name;
    const Ref<FunctionBody> body;
    TensorList saved;   // an absent tensor is null
    TensorList inputs;  // an argument that is no tensor is null
    TensorList outputs;
    std::span<const Output> kinds;  // of each output
    bool gives_zeros;               // backward gets zeros in place of a missing gradient
};

// Records the call, if the thread records and an input requires grad. Returns the tensors that replace the outputs:
// other tensors of the same memory; a written input itself. Raises YOKE_E_STATE for a written leaf that requires
// grad, and YOKE_E_VALUE for a written output that is no input.
std::vector<Tensor> record_function(const FunctionCall &call);

class FunctionNode final : public Node {
public:
    explicit FunctionNode(const FunctionCall &call);
    ~FunctionNode() override;

    const char *name() const noexcept override { return name_.c_str(); }
    int output_count() const noexcept override { return static_cast<int>(outputs_.size()); }
    std::span<const Edge> edges() const noexcept override { return edges_; }
    const char *edge_name(size_t) const noexcept override { return "input"; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override;
    void release_saved() noexcept override;

    // Visits the tensors kept for backward: visit(tensor as remembered).
    template <class Visit>
    void each_saved(Visit visit)
    {
        if (gate_.enter())
            for (const Kept &each : saved_)
                if (each.tensor.is_kept()) visit(each.tensor);
        leave();
    }

private:
    // Tensor as the node remembers it, with shape and strides.
    struct Kept {
        Remembered tensor{};
        std::unique_ptr<int64_t[]> dims;
    };
    static std::vector<Kept> remember_all(TensorList tensors, bool with_data);
    std::vector<Tensor> restore_saved();
    void leave() noexcept;
    void drop_saved() noexcept;
    Tensor fitting(size_t input, Tensor gradient) const;

    const std::string name_;
    const Ref<FunctionBody> body_;
    const bool gives_zeros_;
    std::vector<Edge> edges_;
    std::vector<Kept> saved_, inputs_, outputs_;
    int counted_ = 0;  // tensors whose memory counts as alive
    ReadGate gate_;    // before the memory that is kept
};

}  // namespace yoke
