#include "core/autograd/backward.h"

#include "core/autograd/notes.h"
#include "core/autograd/walk.h"

namespace yoke {

namespace {

void seed_all(Walk &walk, TensorList roots, TensorList gradients)
{
    NoGrad no_grad;
    for (size_t i = 0; i < roots.size(); ++i)
        walk.seed(*roots[i], i < gradients.size() ? gradients[i] : nullptr);
}

}  // namespace

void backward(TensorList roots, TensorList gradients, bool retain_graph)
{
    Walk walk(retain_graph, true);
    try {
        seed_all(walk, roots, gradients);
    } catch (...) {
        walk.refuse(roots);
        throw;
    }
    walk.run();
}

// Raises unless the leaf keeps its own gradient.
static void check_unwatched(const LeafNode &leaf, const yoke_tensor &input)
{
    if (leaf.watcher())
        fail(
            YOKE_E_UNSUPPORTED,
            "backward: argument 'inputs' has the tensor %s, a parameter of a data parallel module, whose ranks reduce all gradients together; leave 'inputs' out, or use grad()",
            describe(input).c_str());
}

void backward_to(TensorList roots, TensorList root_gradients, TensorList inputs, bool retain_graph)
{
    Walk walk(retain_graph, false);
    for (yoke_tensor *input : inputs) {
        retain_grad(*input, "backward");
        if (is_leaf(*input)) check_unwatched(static_cast<LeafNode &>(*node_of(*input)), *input);
        walk.capture(*input);
    }
    seed_all(walk, roots, root_gradients);
    walk.run();
    std::unordered_set<const Node *> taken;  // an input may stand twice in the list
    for (size_t i = 0; i < inputs.size(); ++i) {
        Node *const node = node_of(*inputs[i]);
        if (node->is_leaf() && taken.insert(node).second)
            static_cast<LeafNode &>(*node).add(walk.captured(i));
    }
}

void refuse_backward(TensorList roots, const char *why)
{
    Walk walk(false, true);
    try {
        fail(YOKE_E_VALUE, "%s", why);
    } catch (const Error &) {
        walk.refuse(roots);
    }
}

std::vector<Tensor> gradients(TensorList roots, TensorList root_gradients, TensorList inputs,
                              bool retain_graph, bool allow_unused)
{
    Walk walk(retain_graph, false);
    for (size_t i = 0; i < inputs.size(); ++i) {
        if (!inputs[i]->requires_grad())
            fail(
                YOKE_E_STATE,
                "grad: input %zu, %s, does not require grad; call requires_grad_() on it before the forward",
                i, describe(*inputs[i]).c_str());
        walk.capture(*inputs[i]);
    }
    seed_all(walk, roots, root_gradients);
    walk.run();
    std::vector<Tensor> results;
    for (size_t i = 0; i < inputs.size(); ++i) {
        Tensor found = walk.captured(i);
        if (!found.present() && !allow_unused)
            fail(
                YOKE_E_VALUE,
                "grad: no output depends on input %zu, %s; leave it out, or set allow_unused for a gradient of none",
                i, describe(*inputs[i]).c_str());
        // The caller may change a gradient without changing the others.
        results.push_back(found.present() ? own_gradient(std::move(found)) : Tensor());
    }
    return results;
}

}  // namespace yoke
