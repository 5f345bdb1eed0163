// backward.h: walking the tape.
//
// Nodes are run by falling sequence number: every use of a tensor was recorded after the tensor was made, so when a
// node's turn comes its gradients are complete. Leaves have the smallest numbers, and are run earlier: as soon as every
// node that uses them has, so that a new gradient does not wait beside the old one for the end. The order of all that
// is added depends on nothing but the recording, and no recursion is involved. A walk that fails midway has given some
// leaves their gradients.
//
// Several threads may walk one graph, or graphs that share a trunk: a walk holds what it reads while it reads it. Where
// one that does not retain the graph has been, a later one raises YOKE_E_STATE, as it would in one thread; which comes
// later is for the program to order, or all of them but the last retain it. A leaf adds what comes to it under a lock
// of its own.
#pragma once

#include "core/autograd/node.h"

#include <memory>
#include <vector>

namespace yoke {

// The gradients of the roots with respect to every leaf behind them, added to what the leaves hold. A null gradient
// stands for 1 and wants a root of one element. Unless `retain_graph`, saved tensors are freed as they have been read.
void backward(TensorList roots, TensorList gradients, bool retain_graph);

// Watchers of leaves behind the roots are told `why` a walk to them was refused, as by a backward that refuses it.
void refuse_backward(TensorList roots, const char *why);

// The gradients of the roots with respect to `inputs`, returned; no leaf is touched. An input that no root depends on
// raises YOKE_E_VALUE.
std::vector<Tensor> gradients(TensorList roots, TensorList root_gradients, TensorList inputs,
                              bool retain_graph);

// a + b. In place where nobody else can see a's memory, or where `in_place` says that a's memory is meant.
Tensor add_gradients(Tensor a, const yoke_tensor &b, bool in_place);

// `gradient` itself if its memory is its own and dense, else a copy: what a leaf may keep and later change in place.
Tensor own_gradient(Tensor gradient);

// What a walk over the tape has of the ops above it while it lasts.
class WalkState {
public:
    virtual ~WalkState() = default;
    // Around each node, once `watches` is set.
    virtual void begin_node(const Node &) {}
    virtual void end_node(const Node &) {}
    bool watches = false;
};

// Functions of the ops above, which this layer needs; core/ops defines them.
struct TapeOps {
    std::unique_ptr<WalkState> (*begin_walk)();
    void (*add_)(yoke_tensor &x, const yoke_tensor &y);
    Tensor (*add)(const yoke_tensor &x, const yoke_tensor &y);
    Tensor (*clone)(const yoke_tensor &x);
    Tensor (*ones_like)(const yoke_tensor &x);
};
extern const TapeOps tape_ops;

}  // namespace yoke
