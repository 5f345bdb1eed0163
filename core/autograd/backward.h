// backward.h: walking the tape.
//
// Nodes are run by falling sequence number. Every use of a tensor was recorded after the tensor was made, so the
// gradients of a node are complete when the walk runs the node. Leaves have the smallest numbers, but are run
// earlier: a leaf runs as soon as all its users have run. So a new gradient does not wait beside the old gradient
// until the end. The order of all additions depends only on the recording. No recursion is involved. A walk failing
// midway has given some leaves their gradients.
//
// Several threads may walk the same graph, or graphs with a common trunk: a walk holds a reference to all data in
// use. After a walk that does not retain the graph, a later walk raises YOKE_E_STATE, also if the walks run in
// different threads. The program must order the walks, or all walks but the last must retain the graph. A leaf adds
// gradients under a lock of its own.
#pragma once

#include "core/autograd/node.h"

#include <memory>
#include <vector>

namespace yoke {

// Computes the gradients of the roots with respect to every leaf behind the roots. Each gradient is added to the
// leaf's gradient, or given to the leaf's watcher. A null gradient stands for 1 and requires a root of one element.
// Unless `retain_graph` is set, saved tensors are freed as soon as they have been read.
void backward(TensorList roots, TensorList gradients, bool retain_graph);

// Computes the gradients of the roots as backward() does, for the inputs alone: adds them to the gradients of inputs
// that are leaves, and to the retained gradients of the others, which retain them from now on. Raises YOKE_E_STATE
// for an input that does not require grad, and YOKE_E_UNSUPPORTED for a leaf with a watcher.
void backward_to(TensorList roots, TensorList root_gradients, TensorList inputs, bool retain_graph);

// Notifies the watchers of leaves behind the roots that a walk was refused, with the reason `why`. A refused backward
// does the same.
void refuse_backward(TensorList roots, const char *why);

// Returns the gradients of the roots with respect to `inputs`, and changes no leaf. Raises YOKE_E_STATE for an input
// that does not require grad. For an input on which no root depends, returns null if `allow_unused`, else raises
// YOKE_E_VALUE.
std::vector<Tensor> gradients(TensorList roots, TensorList root_gradients, TensorList inputs,
                              bool retain_graph, bool allow_unused = false);

// Returns a + b. The sum is made in place if no other tensor shares a's memory, or if `in_place` asks for a's memory.
Tensor add_gradients(Tensor a, const yoke_tensor &b, bool in_place);

// Returns `gradient` itself if no other tensor shares the memory and the memory is dense, else a copy. A leaf may
// keep the result and later change it in place.
Tensor own_gradient(Tensor gradient);

// Questions of a running node to its walk, about an edge to a cast from float32 (Node::casts_f32).
class WalkEdges {
public:
    // Returns whether the walk takes the gradient of the edge in float32.
    virtual bool takes_f32(const Edge &edge) const = 0;
    // Returns the gradient of the leaf behind the cast, if the node may add to it instead of returning its own
    // gradient. Null otherwise: then the leaf has no gradient yet, has a watcher, or gets other gradients in this walk.
    virtual Tensor leaf_gradient(const Edge &edge) const = 0;

protected:
    ~WalkEdges() = default;
};

// State of core/ops for the duration of a walk over the tape.
class WalkState {
public:
    virtual ~WalkState() = default;
    // Runs before each node, and end_node() after it, if `watches` is set.
    virtual void begin_node(const Node &) {}
    virtual void end_node(const Node &) {}
    bool watches = false;
    const WalkEdges *edges = nullptr;  // of the walk, which sets it
};

// Functions of the ops layer above, needed by this layer; core/ops defines them.
struct TapeOps {
    std::unique_ptr<WalkState> (*begin_walk)();
    void (*add_)(yoke_tensor &x, const yoke_tensor &y);
    Tensor (*add)(const yoke_tensor &x, const yoke_tensor &y);
    Tensor (*clone)(const yoke_tensor &x);
    Tensor (*ones_like)(const yoke_tensor &x);
    bool (*has_nan)(const yoke_tensor &x);
};
extern const TapeOps tape_ops;

}  // namespace yoke
