// An output of a module leads a backward to its reducer: core/parallel/tied_outputs.cpp.
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

std::vector<Tensor> tied(const Model &model, const std::vector<Tensor> &outputs,
                         uint64_t forward = 0)
{
    std::vector<yoke_tensor *> list;
    for (const Tensor &each : outputs) list.push_back(each.get());
    return model.reducer->tied(list, forward);
}

Tensor tied(const Model &model, const Tensor &output)
{
    const Tensor made = tied(model, std::vector{output})[0];
    return made.present() ? made : output;
}

void go_back_from(const Tensor &output)
{
    const Tensor loss = ops::sum(*output);
    yoke_tensor *root = loss.get();
    backward({&root, 1}, {}, false);
}

TEST(ReducerOutput, LeadsToItsReducerWithoutAParameter)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3, 17}), input({4});
        model.join(group, kSmall);
        for (int step = 0; step < 3; ++step) {
            const bool is_first = group->rank() == 0;
            go_back_from(
                tied(model, is_first ? model.loss({3, 6}) : ops::mul(*input.params[0], 2.)));
            EXPECT_EQ(model.grads(), (Values{1, 2}));
            EXPECT_EQ(input.grads(), (Values{is_first ? -1. : 2.}));
            model.forget_grads();
            input.forget_grads();
        }
        go_back_from(tied(model, input.params[0]));  // no rank uses the model
        EXPECT_EQ(model.grads(), (Values{-1, -1}));
    });
}

TEST(ReducerOutput, IsTiedWhereItRequiresAGradientOrNoneDoes)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        const Tensor plain = filled(2, 1.F), number = ops::full({}, 1.0, YOKE_I64);
        model.reducer = Reducer::make(group, {{"p", model.params[0]}}, {}, {});
        const std::vector<Tensor> some = tied(model, {plain, model.params[0], number});
        EXPECT_TRUE(!some[0].present() && some[1].present() && !some[2].present());
        const std::vector<Tensor> none = tied(model, {plain, number});
        EXPECT_TRUE(none[0].present() && none[0]->requires_grad() && !none[1].present());
        EXPECT_EQ(none[0]->data, plain->data);
        EXPECT_FALSE(plain->requires_grad());
        const NoGrad no_grad;
        EXPECT_FALSE(tied(model, std::vector{model.params[0]})[0].present());
    });
    Model alone({3});
    alone.join(init_threads(1, 20, kCall)[0]);
    EXPECT_FALSE(tied(alone, std::vector{alone.params[0]})[0].present());
}

TEST(ReducerOutput, OfAnOpIsTiedItselfAndOnceAndAViewFollows)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        model.join(group);
        const Tensor made = ops::mul(*model.params[0], 2.), view = ops::unsqueeze(*made, 0);
        ops::mul_(*made, 2.);
        const std::vector<Tensor> none = tied(model, std::vector{made, view});
        EXPECT_FALSE(none[0].present() || none[1].present());
        const Node *node = node_of(*made);
        EXPECT_STREQ(node->name(), "DistributedDataParallel");
        EXPECT_EQ(node_of(*tied(model, made)), node);
        go_back_from(view);  // through the history that its base has by now
        EXPECT_EQ(model.grads(), Values{4});
    });
}

TEST(ReducerOutput, IsTiedItselfWhereItsForwardMadeItWhateverElseHasBegunSince)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        model.join(group);
        const Tensor before = ops::mul(*model.params[0], 2.);
        const uint64_t outer = model.reducer->check();
        const Tensor made = ops::mul(*model.params[0], 2.);
        const uint64_t inner = model.reducer->check();
        EXPECT_LE(outer, inner);
        const std::vector<Tensor> all{before, made};
        const std::vector<Tensor> of_inner = tied(model, all, inner);
        EXPECT_TRUE(of_inner[0].present() && of_inner[1].present());
        const std::vector<Tensor> of_outer = tied(model, all, outer);
        EXPECT_TRUE(of_outer[0].present() && !of_outer[1].present());
    });
}

TEST(ReducerOutput, HasInGradAllUsesOfWhatItIs)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3}), input({3});
        model.join(group);
        const Tensor made = ops::mul(*model.params[0], 2.), loss = ops::sum(*made);
        for (const Tensor &given : {tied(model, made), tied(model, input.params[0])}) {
            const Tensor all = ops::add(*loss, *ops::sum(*ops::mul(*given, 3.)));
            yoke_tensor *output = all.get(), *wanted = given.get();
            const Tensor grad = gradients({&output, 1}, {}, {&wanted, 1}, true)[0];
            const double want = given.get() == made.get() ? 4 : 3;
            double value = 0;
            copy_to_host(*ops::mean(*grad), &value, sizeof value, "a test");
            EXPECT_EQ(value, want);
        }
    });
}

TEST(ReducerOutput, OfALeafIsAViewOfIt)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        model.join(group);
        const Tensor given = tied(model, model.params[0]);
        EXPECT_EQ(given->data, model.params[0]->data);
        expect_error(YOKE_E_UNSUPPORTED, {"'x' is a view"}, [&] { ops::mul_(*given, 2.); });
        go_back_from(given);
    });
}

TEST(ReducerOutput, OfOneThatWasLetGoIsRefused)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3}), input({4});
        model.join(group);
        const Tensor output = tied(model, input.params[0]);
        const Tensor second = tied(model, model.loss({group->rank() + 1.}));
        model.reducer->let_go();
        expect_error(YOKE_E_STATE, {"released after the forward"}, [&] { go_back_from(output); });
        model.join(group);  // reduces gradients of outputs recorded before
        go_back_from(second);
        EXPECT_EQ(model.grads(), (Values{1.5}));
    });
}

}  // namespace
}  // namespace yoke::test
