// Gradients that a script has put elsewhere between two backward passes: core/parallel/reducer.cpp, step.cpp.
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

void set_grad(const Tensor &param, const Tensor &grad)
{
    set_grad_of(*param, grad.get(), "a test");
}

Tensor grad(const Tensor &param)
{
    return grad_of(*param, "a test");
}

TEST(ReducerGradients, ThatWereExchangedAreAddedToAsTheyAre)
{
    for (const bool is_synced : {true, false})
        on_ranks(2, [is_synced](const Ref<Group> &group) {
            Model model({5, 5, 5});
            model.join(group);
            model.go_back({1, 2, 4});
            const Tensor first = grad(model.params[0]), second = grad(model.params[1]);
            set_grad(model.params[0], second);
            set_grad(model.params[1], first);
            model.reducer->set_sync(is_synced);
            const double own = 10 * (2 * group->rank() + 1);  // 20 in the mean
            model.go_back({own, own, 0});
            model.reducer->set_sync(true);
            model.go_back({0, 0, 0.5});
            EXPECT_EQ(model.grads(), (Values{22, 21, 4.5}));
        });
}

TEST(ReducerGradients, OneThatTwoLeavesHaveIsOfBoth)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({5, 5});
        model.join(group);
        model.go_back({1, 2});
        set_grad(model.params[0], grad(model.params[1]));
        model.go_back({10, 20});
        EXPECT_EQ(model.grads(), (Values{12, 22}));
        set_grad(model.params[1], grad(model.params[0]));
        model.go_back({100, 0});
        EXPECT_EQ(model.grads(), (Values{112, 12}));
    });
}

TEST(ReducerGradients, ThatWasTransposedStaysSo)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({});
        model.params.push_back(ops::full({{2, 2}}, 1.0, YOKE_F64));
        set_requires_grad(*model.params[0], true);
        model.join(group);
        model.go_back({1});
        auto *held = reinterpret_cast<double *>(grad(model.params[0])->data);
        for (int i = 0; i < 4; ++i) held[i] = i;
        set_grad(model.params[0], ops::transpose(*grad(model.params[0]), 0, 1));
        const Tensor factors = ops::full({{2, 2}}, 0.0, YOKE_F64);
        auto *factor = reinterpret_cast<double *>(factors->data);
        for (int i = 0; i < 4; ++i) factor[i] = 20 * (i + 1) * group->rank();
        const Tensor loss = ops::sum(*ops::mul(*model.params[0], *factors));
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, false);
        const Tensor after = ops::contiguous(*grad(model.params[0]));
        const auto *now = reinterpret_cast<const double *>(after->data);
        EXPECT_EQ(std::vector<double>(now, now + 4), (std::vector<double>{10, 22, 31, 43}));
    });
}

}  // namespace
}  // namespace yoke::test
