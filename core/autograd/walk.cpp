#include "core/autograd/walk.h"

#include <algorithm>

namespace yoke {

Walk::Walk(bool retain_graph, bool to_leaves) : retain_graph_(retain_graph), to_leaves_(to_leaves)
{
    state_->edges = this;
}

static void check_gradient(const yoke_tensor &gradient, const yoke_tensor &root)
{
    if (!same(gradient.shape(), root.shape()) || gradient.dtype != root.dtype ||
        gradient.device != root.device)
        fail(
            gradient.dtype != root.dtype ? YOKE_E_TYPE : YOKE_E_VALUE,
            "backward: argument 'gradient' is %s, but the tensor is %s; both must have the same shape, dtype and device",
            describe(gradient).c_str(), describe(root).c_str());
}

void Walk::seed(yoke_tensor &root, const yoke_tensor *gradient)
{
    Node *node = node_of(root);
    if (!node)
        fail(
            YOKE_E_STATE,
            "backward: the tensor %s does not require grad and has no graph; call requires_grad_() on a leaf, and run the forward again without no_grad",
            describe(root).c_str());
    if (!gradient && root.numel != 1)
        fail(
            YOKE_E_VALUE,
            "backward: argument 'gradient' is missing, but the tensor %s has %lld elements; give 'gradient', or call backward on one element, such as sum() or mean()",
            describe(root).c_str(), static_cast<long long>(root.numel));
    if (gradient) check_gradient(*gradient, root);
    roots_.push_back(node);
    given_ |= gradient != nullptr;
    contribute(*node, root.output_index, gradient ? alias(*gradient) : tape_ops.ones_like(root));
}

void Walk::capture(yoke_tensor &input)
{
    // Some ops may have used the tensor before a node passing gradients on was put on the tensor. The edges of such
    // ops lead past this node, so the capture is made behind the node.
    const Result wanted = result_of(input);
    captures_.push_back({wanted.node, wanted.index, nullptr});
}

void Walk::contribute(Node &node, uint32_t index, Tensor gradient)
{
    auto [place, is_new] = pending_.try_emplace(&node);
    Pending &pending = place->second;
    if (is_new) {
        pending.node = Ref<Node>::share(&node);
        pending.gradients.resize(static_cast<size_t>(node.output_count()));
        if (!uses_.contains(&node)) queue_.push(&node);
    }
    Tensor &sum = pending.gradients[index];
    // The sum takes the wider dtype of its parts.
    if (sum.present() && item_size(gradient->dtype) > item_size(sum->dtype))
        std::swap(sum, gradient);
    sum = sum.present() ? add_gradients(std::move(sum), *gradient, false) : std::move(gradient);
}

// Visits the roots and all nodes behind the roots except leaves, each node once. The stack is explicit, since graphs
// are deep.
template <class Visit>
void Walk::each_reached(Visit visit) const
{
    std::unordered_set<const Node *> seen;
    std::vector<const Node *> stack(roots_.begin(), roots_.end());
    while (!stack.empty()) {
        const Node *node = stack.back();
        stack.pop_back();
        if (!seen.insert(node).second) continue;
        visit(*node);
        for (const Edge &edge : node->edges())
            if (edge.node.present() && !edge.node->is_leaf()) stack.push_back(edge.node.get());
    }
}

// Returns the nodes, older nodes first. Of the leaves, only roots are included.
std::vector<const Node *> Walk::reached() const
{
    std::vector<const Node *> order;
    each_reached([&](const Node &node) { order.push_back(&node); });
    std::ranges::sort(order, {}, &Node::sequence);
    return order;
}

// Counts for each leaf the nodes that use the leaf, so note_use() finds the last use. Notes leaves and uses for the
// watchers. Raises YOKE_E_STATE if a leaf has moved after a use.
void Walk::count_uses()
{
    const auto meet = [&](LeafNode &leaf) {
        if (given_) part_from(leaf);
        watching_.meet(leaf);
    };
    each_reached([&](const Node &node) {
        for (const Edge &edge : node.edges()) {
            if (!edge.node.present()) continue;
            if (edge.node->casts_f32()) ++cast_uses_[edge.node.get()];
            if (!edge.node->is_leaf()) continue;
            static_cast<const LeafNode &>(*edge.node).check_use(node);
            if (!uses_[edge.node.get()]++) meet(static_cast<LeafNode &>(*edge.node));
            watching_.note_use(*edge.node, node);
        }
    });
    for (Node *root : roots_)
        if (root->is_leaf()) meet(static_cast<LeafNode &>(*root));
}

// A caller of grad(), and a hook, gets the gradient of the half itself in its own dtype.
bool Walk::takes_f32(const Edge &edge) const
{
    if (!edge.node->casts_f32() || is_watched(*edge.node)) return false;
    return std::ranges::none_of(
        captures_, [&](const Capture &capture) { return capture.node == edge.node.get(); });
}

// The leaf's gradient of this walk must be that of the edge alone, and belong to the leaf. Otherwise a walk that fails
// midway would leave a part of a gradient. A hook, and a check, must see this walk's gradient by itself.
Tensor Walk::leaf_gradient(const Edge &edge) const
{
    const Edge *behind = edge.node->casts_f32();
    if (!to_leaves_ || checks_ || !behind || !behind->node.present() || !behind->node->is_leaf())
        return nullptr;
    const auto is_alone = [](const auto &uses, const Node &node) {
        const auto found = uses.find(&node);
        return found != uses.end() && found->second == 1;
    };
    Node &cast = *edge.node, &leaf = *behind->node;
    if (!is_alone(cast_uses_, cast) || !is_alone(uses_, leaf) || watching_.awaits(leaf) ||
        pending_.contains(&cast) || pending_.contains(&leaf) || is_watched(cast) ||
        is_watched(leaf))
        return nullptr;
    return static_cast<LeafNode &>(leaf).grad();
}

// Copies root gradients that share memory with the leaf's gradient. The leaf adds in place, so nodes run later would
// otherwise read the sum.
void Walk::part_from(const LeafNode &leaf)
{
    const Tensor held = leaf.grad();
    if (!held.present()) return;
    for (auto &[node, pending] : pending_)
        for (Tensor &one : pending.gradients)
            if (one.present() && one->storage.get() == held->storage.get())
                one = tape_ops.clone(*one);
}

// Notes that a node using the leaf has run, with or without a gradient for the leaf. After the last such node, the
// leaf takes the gradient at once. Otherwise a walk adding to gradients would hold all new gradients beside the old
// gradients until the end.
void Walk::note_use(Node &leaf)
{
    const auto use = uses_.find(&leaf);
    if (use == uses_.end() || --use->second) return;
    if (pending_.contains(&leaf)) run_next(leaf);
}

// Marks the nodes between the roots and a captured input.
void Walk::mark_needed()
{
    std::unordered_set<const Node *> wanted;
    for (const Capture &capture : captures_) {
        wanted.insert(capture.node);
        if (capture.node->is_leaf()) needed_.insert(capture.node);
    }
    // Older nodes come first, so for every edge the loop already knows whether the edge leads to a captured input.
    for (const Node *node : reached())
        if (wanted.contains(node) || leads_on(*node)) needed_.insert(node);
}

bool Walk::leads_on(const Node &node) const
{
    for (const Edge &edge : node.edges())
        if (edge.node.present() && needed_.contains(edge.node.get())) return true;
    return false;
}

void Walk::run_node(Node &node, std::vector<Tensor> gradients)
{
    if (state_->watches) [[unlikely]]
        state_->begin_node(node);
    pass(node, std::move(gradients));
    if (state_->watches) [[unlikely]]
        state_->end_node(node);
}

static std::string place_of(const Node &node)
{
    const NodeNotes *notes = node.notes();
    const std::string line = notes ? describe(notes->line()) : "";
    return line.empty() ? "outside detect_anomaly() or any script" : "at " + line;
}

static std::string argument_of(const Node &node, size_t edge)
{
    const char *name = node.edge_name(edge);
    return *name ? format("argument %zu ('%s')", edge, name) : format("argument %zu", edge);
}

// Runs the node's backward. An error, and the first NaN among the gradients, is told with the line of the forward.
void Walk::run_backward(Node &node, std::span<Tensor> gradients, std::span<Tensor> out) const
{
    try {
        node.backward(gradients, out);
    } catch (const Error &error) {
        throw Error(
            error.status(),
            format("%s (forward of %s: %s)", error.what(), node.name(), place_of(node).c_str()),
            error.native_code(), error.device());
    }
    for (size_t i = 0; i < out.size(); ++i)
        if (out[i].present() && tape_ops.has_nan(*out[i]))
            fail(
                YOKE_E_STATE,
                "backward of %s returned NaN for %s, %s; its forward ran %s; look there for the first value that is infinite or NaN",
                node.name(), argument_of(node, i).c_str(), describe(*out[i]).c_str(),
                place_of(node).c_str());
}

void Walk::pass(Node &node, std::vector<Tensor> gradients)
{
    for (Capture &capture : captures_)
        if (capture.node == &node) capture.gradient = gradients[capture.index];
    const auto edges = node.edges();
    // A captured input may be the end of the way: nodes behind the input are neither run nor freed.
    if (!to_leaves_ && !leads_on(node)) return;
    Tensor outputs[8];
    std::vector<Tensor> many(edges.size() > 8 ? edges.size() : 0);
    std::span<Tensor> out =
        many.empty() ? std::span<Tensor>(outputs, edges.size()) : std::span<Tensor>(many);
    if (checks_) [[unlikely]]
        run_backward(node, gradients, out);
    else
        node.backward(gradients, out);
    gradients.clear();
    if (!retain_graph_) node.release_saved();
    for (size_t i = 0; i < edges.size(); ++i) {
        if (!edges[i].node.present()) continue;
        if (out[i].present() && needed(*edges[i].node))
            contribute(*edges[i].node, edges[i].index, std::move(out[i]));
        if (edges[i].node->is_leaf()) note_use(*edges[i].node);
    }
}

void Walk::run_next(Node &node)
{
    auto taken = pending_.extract(&node);
    if (NodeNotes *notes = node.notes(); notes && needed(node)) [[unlikely]]
        notes->pass(taken.mapped().gradients, node);
    if (LeafWatcher *watcher = watching_.take(node))
        watcher->arrive(static_cast<LeafNode &>(node), std::move(taken.mapped().gradients[0]));
    else if (needed(node))
        run_node(node, std::move(taken.mapped().gradients));
}

// Runs leaves that are roots, and leaves whose last user passed no gradient. Younger leaves come first, as for all
// nodes.
void Walk::run_left_leaves()
{
    for (const auto &[leaf, pending] : pending_) queue_.push(leaf);
    while (!queue_.empty()) {
        Node *leaf = queue_.top();
        queue_.pop();
        run_next(*leaf);
    }
}

void Walk::run()
{
    NoGrad no_grad;
    const NoAutocast no_autocast;
    if (!to_leaves_) {
        mark_needed();
        return run_all();
    }
    count_uses();
    try {
        watching_.begin();
        run_all();
        watching_.finish();
    } catch (...) {
        watching_.fail();
        throw;
    }
}

void Walk::refuse(TensorList roots) noexcept
try {
    roots_.clear();
    for (const yoke_tensor *root : roots)
        if (Node *node = node_of(*root)) roots_.push_back(node);
    given_ = false;
    count_uses();
    watching_.fail();
} catch (const std::bad_alloc &) {  // a waiting watcher fails at its deadline
}

void Walk::run_all()
{
    while (!queue_.empty()) {
        Node *node = queue_.top();
        queue_.pop();
        if (!uses_.contains(node)) run_next(*node);
    }
    run_left_leaves();
}

}  // namespace yoke
