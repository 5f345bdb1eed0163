// Casts from float32 on the tape: when a node may hand float32 on, and when it may add to the gradient of a leaf.
#include "core/memory/memory.h"
#include "core/ops/ops.h"
#include "core/ops/recompute/replay.h"
#include "tests/core/autograd/probe.h"
#include "tests/core/expect_error.h"

#include <algorithm>

namespace yoke {

using test::edge_to;
using test::Log;
using test::Made;
using test::made_by;
using test::number;
using test::value_of;

namespace {

// A leaf with a gradient of 10, its cast, and a product of the cast that asks the walk about its edge.
struct Product {
    Log log;
    Tensor leaf = number(1, true);
    Made cast, product;
    Tensor given;  // the walk's answer to leaf_gradient()
    bool takes_f32 = false;

    Product()
    {
        set_grad(10);
        cast = made_by("cast", {edge_to(leaf)}, log);
        cast.node->is_cast = true;
        product = made_by("product", {edge_to(cast.tensor)}, log);
        product.node->action = [this](std::span<Tensor> in, std::span<Tensor> out) {
            const WalkEdges &edges = *Replays::of_thread().edges;
            const Edge edge = edge_to(cast.tensor);
            given = edges.leaf_gradient(edge);
            takes_f32 = edges.takes_f32(edge);
            if (given.present())
                ops::add_(*given, *in[0]);
            else
                out[0] = in[0];
        };
    }
    void set_grad(double value)
    {
        const Tensor grad = number(value);
        set_grad_of(*leaf, grad.get(), "a test");
    }
    double grad() const { return value_of(grad_of(*leaf, "a test")); }
    void expect_added(bool added)
    {
        EXPECT_EQ(given.present(), added);
        EXPECT_EQ(std::ranges::count(log, "cast"), added ? 0 : 1);
        given = nullptr;
    }
};

void walk_back(std::vector<yoke_tensor *> roots)
{
    backward(roots, {}, true);
}

}  // namespace

TEST(Casts, AnOnlyProductAddsToTheGradientOfItsLeaf)
{
    Product one;
    const Tensor held = grad_of(*one.leaf, "a test");
    walk_back({one.product.tensor.get()});
    one.expect_added(true);
    EXPECT_TRUE(one.takes_f32);
    EXPECT_EQ(one.grad(), 11);
    EXPECT_EQ(grad_of(*one.leaf, "a test")->data, held->data) << "in place";
    walk_back({one.product.tensor.get()});
    EXPECT_EQ(one.grad(), 12);
}

TEST(Casts, ALeafWithoutAGradientGetsItBehindTheCast)
{
    Product one;
    set_grad_of(*one.leaf, nullptr, "a test");
    walk_back({one.product.tensor.get()});
    one.expect_added(false);
    EXPECT_TRUE(one.takes_f32);
    EXPECT_EQ(one.grad(), 1);
}

TEST(Casts, SeveralUsesOfTheCastAreSummedFirst)
{
    Product one;
    Made more = made_by("more", {edge_to(one.cast.tensor)}, one.log);
    Made root = made_by("root", {edge_to(one.product.tensor), edge_to(more.tensor)}, one.log);
    walk_back({root.tensor.get()});
    one.expect_added(false);
    EXPECT_EQ(one.grad(), 12);
}

TEST(Casts, ALeafThatOthersUseTooIsLeftToTheWalk)
{
    Product one;
    Made other = made_by("other", {edge_to(one.leaf)}, one.log);
    Made root = made_by("root", {edge_to(one.product.tensor), edge_to(other.tensor)}, one.log);
    walk_back({root.tensor.get()});
    one.expect_added(false);
    EXPECT_EQ(one.grad(), 12);
}

TEST(Casts, ACastOrALeafThatIsARootIsLeftToTheWalk)
{
    for (const bool is_leaf : {false, true}) {
        Product one;
        walk_back({one.product.tensor.get(), is_leaf ? one.leaf.get() : one.cast.tensor.get()});
        one.expect_added(false);
        EXPECT_EQ(one.grad(), 12);
    }
}

namespace {

class Keeping final : public LeafWatcher {
public:
    explicit Keeping(Tensor &kept) : kept_(kept) {}
    void begin(const std::vector<Ref<LeafNode>> &, uint64_t) override {}
    void arrive(LeafNode &, Tensor gradient) override { kept_ = std::move(gradient); }
    void end() override {}
    void fail() noexcept override {}

private:
    Tensor &kept_;
};

}  // namespace

TEST(Casts, AWatcherGetsTheGradientOfItsLeaf)
{
    Product one;
    Tensor kept;
    static_cast<LeafNode *>(node_of(*one.leaf))->set_watcher(std::make_shared<Keeping>(kept));
    walk_back({one.product.tensor.get()});
    one.expect_added(false);
    EXPECT_EQ(one.grad(), 10);
    EXPECT_EQ(value_of(kept), 1);
}

TEST(Casts, GradChangesNoLeafAndGivesTheCastItsOwnDtype)
{
    Product one;
    yoke_tensor *outputs[] = {one.product.tensor.get()}, *leaf[] = {one.leaf.get()},
                *cast[] = {one.cast.tensor.get()};
    EXPECT_EQ(value_of(gradients(outputs, {}, leaf, true)[0]), 1);
    EXPECT_FALSE(one.given.present());
    EXPECT_TRUE(one.takes_f32);
    EXPECT_EQ(value_of(gradients(outputs, {}, cast, true)[0]), 1);
    EXPECT_FALSE(one.takes_f32);
    EXPECT_EQ(one.grad(), 10);
}

TEST(Casts, ANodeThatIsNoCastIsAskedInVain)
{
    Product one;
    one.cast.node->is_cast = false;
    walk_back({one.product.tensor.get()});
    one.expect_added(false);
    EXPECT_FALSE(one.takes_f32);
    EXPECT_EQ(one.grad(), 11);
}

TEST(Casts, OfAWidthLessThanAnothersGiveTheSumTheGreaterWidth)
{
    Product one;
    const Tensor half = ops::cast(*number(1), YOKE_F16), wide = ops::cast(*number(2049), YOKE_F32);
    for (const bool half_first : {false, true}) {
        set_grad_of(*one.leaf, nullptr, "a test");
        yoke_dtype seen = YOKE_NONE;
        one.cast.node->action = [&](std::span<Tensor> in, std::span<Tensor> out) {
            seen = in[0]->dtype;
            out[0] = ops::cast(*in[0], YOKE_F64);
        };
        Made root = made_by("root", {edge_to(one.cast.tensor), edge_to(one.cast.tensor)}, one.log);
        root.node->action = [&](std::span<Tensor>, std::span<Tensor> out) {
            out[0] = half_first ? half : wide;
            out[1] = half_first ? wide : half;
        };
        walk_back({root.tensor.get()});
        EXPECT_EQ(seen, YOKE_F32);
        EXPECT_EQ(one.grad(), 2050);
    }
}

}  // namespace yoke
