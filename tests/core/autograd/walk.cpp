// Walks of the tape over nodes of no op: order, many edges, missing gradients, freeing, errors on the way.
#include "core/memory/memory.h"
#include "core/ops/ops.h"
#include "tests/core/autograd/probe.h"
#include "tests/core/expect_error.h"

namespace yoke {

using test::edge_to;
using test::expect_error;
using test::go_back;
using test::Log;
using test::Made;
using test::made_by;
using test::number;
using test::value_of;

TEST(Walk, NodesRunYoungestFirstAndOnceEach)
{
    Log log;
    const Tensor x = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log), b = made_by("b", {edge_to(a.tensor)}, log);
    Made c = made_by("c", {edge_to(a.tensor)}, log);
    Made d = made_by("d", {edge_to(b.tensor), edge_to(c.tensor), edge_to(a.tensor)}, log);
    go_back(d.tensor, true);
    EXPECT_EQ(log, (Log{"d", "c", "b", "a"}));
    EXPECT_EQ(value_of(grad_of(*x, "a test")), 3) << "three ways from d to a";
}

TEST(Walk, ANodeOfManyEdgesGivesEachItsGradient)
{
    Log log;
    std::vector<Tensor> leaves;
    std::vector<Edge> edges;
    for (int i = 0; i < 40; ++i) {
        leaves.push_back(number(i, true));
        edges.push_back(i % 5 == 4 ? Edge{} : edge_to(leaves.back()));  // some without gradient
    }
    Made root = made_by("root", edges, log);
    go_back(root.tensor);
    for (size_t i = 0; i < leaves.size(); ++i)
        EXPECT_EQ(grad_of(*leaves[i], "a test").present(), i % 5 != 4) << i;
}

TEST(Walk, AGradientThatIsMissingMeansZeroAndStopsThere)
{
    Log log;
    const Tensor x = number(1, true), y = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log),
         root = made_by("root", {edge_to(a.tensor), edge_to(y)}, log);
    root.node->action = [](std::span<Tensor> in, std::span<Tensor> out) { out[1] = in[0]; };
    go_back(root.tensor);
    EXPECT_EQ(log, (Log{"root", "release root"}));
    EXPECT_FALSE(grad_of(*x, "a test").present());
    EXPECT_TRUE(grad_of(*y, "a test").present());
}

TEST(Walk, OfSeveralResultsOnlyThoseUsedHaveAGradient)
{
    Log log;
    const Tensor x = number(1, true);
    Made pair = made_by("pair", {edge_to(x)}, log, 3, 2);
    std::vector<bool> seen;
    pair.node->action = [&seen](std::span<Tensor> in, std::span<Tensor> out) {
        for (const Tensor &one : in) seen.push_back(one.present());
        out[0] = in[2];
    };
    go_back(pair.tensor);
    EXPECT_EQ(seen, (std::vector<bool>{false, false, true}));
}

TEST(Walk, SavedTensorsAreFreedRightBehindTheirNode)
{
    Log log;
    const Tensor x = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log), b = made_by("b", {edge_to(a.tensor)}, log);
    go_back(b.tensor);
    EXPECT_EQ(log, (Log{"b", "release b", "a", "release a"}));
}

TEST(Walk, ANodeThatRaisesStopsTheWalkAndLeavesNothingBehind)
{
    Log log;
    const Tensor x = number(1, true);
    const int64_t before = live_tensor_count();
    {
        Made a = made_by("a", {edge_to(x)}, log), b = made_by("b", {edge_to(a.tensor)}, log);
        a.node->action = [](std::span<Tensor>, std::span<Tensor>) {
            fail(YOKE_E_STATE, "a does not want to");
        };
        expect_error(YOKE_E_STATE, {"a does not want to"}, [&] { go_back(b.tensor); });
        EXPECT_TRUE(grad_enabled()) << "the mode is the caller's again";
    }
    EXPECT_FALSE(grad_of(*x, "a test").present());
    EXPECT_EQ(live_tensor_count(), before);
    EXPECT_EQ(log.back(), "free a");
}

TEST(Walk, GradRunsNoNodeThatLeadsToNoInput)
{
    Log log;
    const Tensor x = number(1, true), y = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log), b = made_by("b", {edge_to(y)}, log);
    Made root = made_by("root", {edge_to(a.tensor), edge_to(b.tensor)}, log);
    yoke_tensor *outputs[] = {root.tensor.get()}, *inputs[] = {a.tensor.get()};
    const std::vector<Tensor> grads = gradients(outputs, {}, inputs, true);
    EXPECT_EQ(value_of(grads[0]), 1);
    EXPECT_EQ(log, (Log{"root"}));
    EXPECT_FALSE(grad_of(*x, "a test").present());
    EXPECT_FALSE(grad_of(*y, "a test").present());
}

TEST(Walk, AnInputThatIsAlsoAnOutputAndOneThatStandsTwiceEachGetTheirOwn)
{
    Log log;
    const Tensor x = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log);
    yoke_tensor *outputs[] = {a.tensor.get()}, *inputs[] = {a.tensor.get(), x.get(), x.get()};
    const std::vector<Tensor> grads = gradients(outputs, {}, inputs, true);
    for (const Tensor &grad : grads) EXPECT_EQ(value_of(grad), 1);
    EXPECT_FALSE(shares_memory(*grads[1], *grads[2]));
    EXPECT_FALSE(shares_memory(*grads[0], *grads[1]));
}

// Passes the gradient on unchanged.
class PassingNode final : public Node {
public:
    explicit PassingNode(Edge to) : to_(std::move(to)) {}
    const char *name() const noexcept override { return "passing"; }
    std::span<const Edge> edges() const noexcept override { return {&to_, 1}; }
    const Edge *passes_to() const noexcept override { return &to_; }
    void backward(std::span<Tensor> gradients, std::span<Tensor> out) override
    {
        out[0] = gradients[0];
    }

private:
    const Edge to_;
};

TEST(Walk, GradByWhatNodesThatPassItOnWerePutOnLaterHasAllUses)
{
    Log log;
    const Tensor x = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log, 2, 1);
    Made before = made_by("before", {edge_to(a.tensor)}, log);
    for (int i = 0; i < 2; ++i)
        set_node(*a.tensor, Ref<Node>::adopt(new PassingNode(edge_to(a.tensor))), 0);
    EXPECT_EQ(result_of(*a.tensor).node, a.node);
    EXPECT_EQ(result_of(*a.tensor).index, 1u);
    Made root = made_by("root", {edge_to(a.tensor), edge_to(before.tensor)}, log);
    yoke_tensor *outputs[] = {root.tensor.get(), a.tensor.get()}, *inputs[] = {a.tensor.get()};
    EXPECT_EQ(value_of(gradients(outputs, {}, inputs, true)[0]), 3);
    EXPECT_EQ(value_of(gradients({outputs + 1, 1}, {}, inputs, true)[0]), 1);
    yoke_tensor *earlier[] = {before.tensor.get()};
    EXPECT_EQ(value_of(gradients(earlier, {}, inputs, true)[0]), 1);
    EXPECT_EQ(log, (Log{"root", "before", "before"}));
}

TEST(Walk, AChainOfAMillionNodesIsFreedWithoutRecursion)
{
    Log log;
    log.reserve(1'000'001);
    Tensor x = number(1, true);
    for (int i = 0; i < 1'000'000; ++i) x = made_by("link", {edge_to(x)}, log).tensor;
    log.clear();
    x = Tensor();
    EXPECT_EQ(log.size(), 1'000'000u);
}

TEST(Walk, TwoRootsOfOneGraphAddTheirGradients)
{
    Log log;
    const Tensor x = number(1, true);
    Made a = made_by("a", {edge_to(x)}, log), b = made_by("b", {edge_to(a.tensor)}, log);
    yoke_tensor *roots[] = {a.tensor.get(), b.tensor.get(), b.tensor.get()};
    backward(roots, {}, false);
    EXPECT_EQ(value_of(grad_of(*x, "a test")), 3);
    EXPECT_EQ(log, (Log{"b", "release b", "a", "release a"}));
}

// Returns an action that notes whether the leaf has a gradient when the node runs.
static auto sees(const Tensor &leaf, std::vector<bool> &seen)
{
    return [&leaf, &seen](std::span<Tensor> in, std::span<Tensor> out) {
        seen.push_back(grad_of(*leaf, "a test").present());
        for (Tensor &one : out) one = in[0];
    };
}

TEST(Walk, ALeafRunsAsSoonAsAllThatUseItHave)
{
    Log log;
    const Tensor x = number(1, true), once = number(1, true), twice = number(1, true);
    std::vector<bool> of_once, of_twice;
    Made a = made_by("a", {edge_to(x)}, log);
    Made b = made_by("b", {edge_to(a.tensor), edge_to(twice)}, log);
    Made c = made_by("c", {edge_to(b.tensor), edge_to(once), edge_to(twice)}, log);
    a.node->action = [&](std::span<Tensor> in, std::span<Tensor> out) {
        sees(once, of_once)(in, out);
        sees(twice, of_twice)(in, out);
    };
    b.node->action = a.node->action;
    go_back(c.tensor);
    EXPECT_EQ(of_once, (std::vector{true, true})) << "behind c, before b";
    EXPECT_EQ(of_twice, (std::vector{false, true})) << "behind b, before a";
    EXPECT_EQ(value_of(grad_of(*twice, "a test")), 2);
}

TEST(Walk, ALeafThatNodesUseWithoutAGradientRunsAtTheEnd)
{
    Log log;
    const Tensor x = number(1, true), y = number(1, true), z = number(1, true);
    Made a = made_by("a", {edge_to(x), edge_to(y)}, log);
    Made b = made_by("b", {edge_to(a.tensor), edge_to(y), edge_to(z)}, log);
    b.node->action = [](std::span<Tensor> in, std::span<Tensor> out) { out[1] = in[0]; };
    go_back(b.tensor);  // no gradient reaches a, though a uses y too
    EXPECT_EQ(value_of(grad_of(*y, "a test")), 1);
    EXPECT_FALSE(grad_of(*x, "a test").present());
    EXPECT_FALSE(grad_of(*z, "a test").present());
}

TEST(Walk, ALeafMayBeARootAndUsedToo)
{
    Log log;
    const Tensor x = number(1, true), alone = number(1, true);
    Made a = made_by("a", {edge_to(x), edge_to(x)}, log);
    yoke_tensor *roots[] = {x.get(), a.tensor.get(), alone.get(), x.get()};
    backward(roots, {}, false);
    EXPECT_EQ(value_of(grad_of(*x, "a test")), 4);
    EXPECT_EQ(value_of(grad_of(*alone, "a test")), 1);
}

// A leaf adds to its gradient in place. The walk may have begun with this same tensor, which other nodes still have
// to read.
TEST(Walk, AWalkMayBeginWithTheGradientOfALeafThatItAddsTo)
{
    const Tensor older = number(1, true), leaf = number(1, true);
    const Tensor held = number(1);
    set_grad_of(*leaf, held.get(), "a test");
    const Tensor y = ops::add(*ops::mul(*older, *number(3)), *leaf);
    yoke_tensor *root = y.get(), *seed = held.get();
    backward({&root, 1}, {&seed, 1}, false);
    EXPECT_EQ(value_of(grad_of(*older, "a test")), 3);
    EXPECT_EQ(value_of(grad_of(*leaf, "a test")), 2);
}

// 8 weights hold gradients already. A walk needs memory for 1 new gradient and for the chain's own tensors.
TEST(Walk, NewGradientsDoNotWaitBesideOldOnes)
{
    constexpr int64_t kSide = 128, kBytes = kSide * kSide * 8;
    const int64_t shape[] = {kSide, kSide};
    std::vector<Tensor> weights;
    for (int i = 0; i < 8; ++i) {
        weights.push_back(ops::full(shape, 0.01, YOKE_F64));
        set_requires_grad(*weights.back(), true);
    }
    int64_t most = 0;
    for (int pass = 0; pass < 2; ++pass) {
        Tensor x = ops::full(shape, 1.0, YOKE_F64);
        Device &device = *x->device;
        for (const Tensor &weight : weights) x = ops::matmul(x, weight);
        x = ops::sum(x);
        reset_peak_memory_stats(device);
        const int64_t before = memory_stats(device).allocated;
        go_back(x, true);  // saved tensors stay, so their memory does not serve gradients
        most = memory_stats(device).max_allocated - before;
    }
    EXPECT_LT(most, 5 * kBytes);
}

}  // namespace yoke
