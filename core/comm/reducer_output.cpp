// What a module gave is tied to its reducer: a backward that leads to it takes part though no parameter was used.
#include "core/base/error.h"
#include "core/comm/reducer.h"

#include <algorithm>
#include <array>
#include <utility>

namespace yoke {

namespace {

// Passes gradients on as they are; its second edge leads to the reducer's own leaf, to which nothing comes.
class Output final : public Node {
public:
    Output(Edge made_by, Ref<LeafNode> anchor)
        : edges_{std::move(made_by), Edge{std::move(anchor), 0}}
    {
    }
    const char *name() const noexcept override { return "DistributedDataParallel"; }
    std::span<const Edge> edges() const noexcept override { return edges_; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        if (edges_[0].node.present()) out[0] = std::move(gradients[0]);
    }

private:
    const std::array<Edge, 2> edges_;
};

}  // namespace

std::vector<Tensor> Reducer::tied(TensorList outputs) const
{
    std::vector<Tensor> all(outputs.size());
    if (group_->size() == 1 || !grad_enabled()) return all;
    const auto requires_grad = [](const yoke_tensor *each) { return each->requires_grad(); };
    const bool is_recorded = std::ranges::any_of(outputs, requires_grad);
    for (size_t i = 0; i < all.size(); ++i) {
        const yoke_tensor &given = *outputs[i];
        if (is_recorded ? !given.requires_grad() : !is_floating(given.dtype)) continue;
        Edge made_by;
        if (given.requires_grad()) made_by = {Ref<Node>::share(node_of(given)), given.output_index};
        all[i] = alias(given);
        set_node(*all[i], Ref<Node>::adopt(new Output(std::move(made_by), anchor_)), 0);
    }
    return all;
}

}  // namespace yoke
