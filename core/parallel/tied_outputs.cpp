#include "core/parallel/tied_outputs.h"

#include <algorithm>
#include <array>
#include <utility>

namespace yoke {

namespace {

// Node that passes gradients on unchanged. Its second edge leads to the reducer's own leaf, which gets no gradient.
class Output final : public Node {
public:
    Output(Edge made_by, Ref<LeafNode> anchor)
        : edges_{std::move(made_by), Edge{std::move(anchor), 0}}
    {
    }
    bool leads_to(const LeafNode *anchor) const noexcept { return edges_[1].node.get() == anchor; }
    const char *name() const noexcept override { return "DistributedDataParallel"; }
    std::span<const Edge> edges() const noexcept override { return edges_; }
    const Edge *passes_to() const noexcept override
    {
        return edges_[0].node.present() ? &edges_[0] : nullptr;
    }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        if (edges_[0].node.present()) out[0] = std::move(gradients[0]);
    }

private:
    const std::array<Edge, 2> edges_;
};

// Ties a result of the forward in place, once. The tensor itself gets another node, so writes act as before on its
// views and other holders.
void tie_result(yoke_tensor &given, const Ref<LeafNode> &anchor)
{
    const auto *made_by = dynamic_cast<const Output *>(node_of(given));
    if (made_by && made_by->leads_to(anchor.get())) return;
    Edge edge{Ref<Node>::share(node_of(given)), given.output_index};
    const auto rewrites = given.node_rewrites;  // a stale view stays stale
    set_node(given, Ref<Node>::adopt(new Output(std::move(edge), anchor)), 0);
    given.node_rewrites = rewrites;
}

// Returns a tied tensor in the memory of `given`. For a tensor with a gradient, this is a view, because an op with a
// gradient may not write into a view. For a tensor without a gradient, this is no view.
Tensor tied_alias(const yoke_tensor &given, const Ref<LeafNode> &anchor)
{
    Edge made_by;
    if (given.requires_grad()) made_by = {Ref<Node>::share(node_of(given)), given.output_index};
    Tensor made = alias(given);
    made->is_view = given.requires_grad();
    set_node(*made, Ref<Node>::adopt(new Output(std::move(made_by), anchor)), 0);
    if (made->is_view) made->node_rewrites = given.node_rewrites;
    return made;
}

}  // namespace

std::vector<Tensor> tied_outputs(TensorList outputs, uint64_t forward, const Ref<LeafNode> &anchor)
{
    std::vector<Tensor> all(outputs.size());
    if (!grad_enabled()) return all;
    const auto requires_grad = [](const yoke_tensor *each) { return each->requires_grad(); };
    const bool is_recorded = std::ranges::any_of(outputs, requires_grad);
    for (size_t i = 0; i < all.size(); ++i) {
        yoke_tensor &given = *outputs[i];
        if (is_recorded ? !given.requires_grad() : !is_floating(given.dtype)) continue;
        if (is_leaf(given) || node_of(given)->sequence < forward)
            all[i] = tied_alias(given, anchor);
        else
            tie_result(given, anchor);
    }
    return all;
}

}  // namespace yoke
