// Gradients of several ranks become their mean while backward runs: core/comm/reducer.cpp, buckets.cpp.
#include "core/comm/reducer.h"
#include "core/autograd/backward.h"
#include "tests/core/comm/threads.h"

#include <cmath>

namespace yoke::test {
namespace {

// A model of a few vectors: the loss is the sum of scale_i * x_i * p_i over those that are used.
struct Model {
    std::vector<Tensor> params;
    std::shared_ptr<Reducer> reducer;
    std::string compression;
    BucketHook hook;

    explicit Model(const std::vector<int64_t> &lengths, yoke_dtype dtype = YOKE_F64)
    {
        for (const int64_t length : lengths) {
            const int64_t shape[] = {length};
            params.push_back(ops::full(shape, 1.0, dtype));
            set_requires_grad(*params.back(), true);
        }
    }
    ~Model()
    {
        if (reducer) reducer->detach();
    }
    void join(const Ref<Group> &group, BucketSizes sizes = {})
    {
        std::vector<Reducer::Named> named;
        for (size_t i = 0; i < params.size(); ++i)
            named.push_back({"p" + std::to_string(i), params[i]});
        reducer = Reducer::make(group, std::move(named), {}, {sizes, compression, hook});
    }
    // The gradient of params[i] is factors[i]; 0: it is not used.
    void go_back(const std::vector<double> &factors) const
    {
        Tensor loss = ops::full({}, 0.0, params[0]->dtype);
        for (size_t i = 0; i < params.size(); ++i)
            if (factors[i] != 0)
                loss = ops::add(*loss, *ops::sum(*ops::mul(*params[i], factors[i])));
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, false);
    }
    std::vector<double> grads() const
    {
        std::vector<double> first;
        for (const Tensor &param : params) {
            const Tensor grad = grad_of(*param, "a test");
            if (!grad.present()) {
                first.push_back(-1);
                continue;
            }
            EXPECT_TRUE(same(grad->shape(), param->shape()));
            const Tensor wide = ops::cast(*grad, YOKE_F64);
            std::vector<double> all(static_cast<size_t>(grad->numel));
            copy_to_host(*wide, all.data(), wide->nbytes(), "a test");
            for (const double each : all) EXPECT_EQ(each, all[0]);
            first.push_back(all[0]);
        }
        return first;
    }
    void forget_grads() const
    {
        for (const Tensor &each : params) set_grad_of(*each, nullptr, "a test");
    }
};

using Values = std::vector<double>;

void on_ranks(int32_t size, const std::function<void(const Ref<Group> &)> &run)
{
    std::vector<Ref<Group>> groups = init_threads(size, 20, kCall);
    const auto told = each_rank(groups, [&](Group &group) { run(Ref<Group>::share(&group)); });
    EXPECT_EQ(told, std::vector<std::string>(static_cast<size_t>(size)));
}

constexpr BucketSizes kSmall{64, 128};

TEST(Buckets, AreClosedByTheParameterThatFillsThemAndHoldOneDtypeEach)
{
    Model doubles({4, 20, 8, 1}), floats({2}, YOKE_F32);
    std::vector<Tensor> params = doubles.params;
    params.push_back(floats.params[0]);
    EXPECT_EQ(plan_buckets(params, {4, 3, 2, 1, 0}, kSmall), (BucketPlan{{3, 2}, {1}, {4}, {0}}));
    EXPECT_EQ(plan_buckets(params, {0, 1, 2, 3, 4}, {}), (BucketPlan{{3, 0, 2, 1}, {4}}));
}

TEST(Reducer, MakesGradientsTheMeanOfAllRanks)
{
    for (const int32_t size : {2, 3, 4})
        on_ranks(size, [size](const Ref<Group> &group) {
            Model model({3, 17, 9, 1});
            model.join(group, kSmall);
            for (int step = 1; step <= 3; ++step) {
                const double own = step * (group->rank() + 1);
                model.go_back({own, 2 * own, 3 * own, 4 * own});
                const double mean = step * (size + 1) / 2.;
                EXPECT_EQ(model.grads(), (Values{mean, 2 * mean, 3 * mean, 4 * mean}));
                model.forget_grads();
            }
        });
}

TEST(Reducer, TakesTheOrderInWhichRankZerosGradientsCame)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({8, 8, 8, 8});
        model.join(group, kSmall);
        EXPECT_EQ(model.reducer->bucket_names(),
                  (std::vector<std::vector<std::string>>{{"p3"}, {"p2", "p1"}, {"p0"}}));
        // The last addition is gone back first, whatever the parameter's number is.
        Tensor loss = ops::full({}, 0.0, YOKE_F64);
        const std::vector<size_t> uses =
            group->rank() ? std::vector<size_t>{0, 1, 2, 3} : std::vector<size_t>{3, 1, 2, 0};
        for (const size_t i : uses) loss = ops::add(*loss, *ops::sum(*model.params[i]));
        yoke_tensor *root = loss.get();
        backward({&root, 1}, {}, false);
        EXPECT_EQ(model.reducer->bucket_names(),
                  (std::vector<std::vector<std::string>>{{"p0"}, {"p2", "p1"}, {"p3"}}));
        EXPECT_EQ(model.grads(), (Values{1, 1, 1, 1}));
        model.go_back({1, 2, 3, 4});
        EXPECT_EQ(model.grads(), (Values{2, 3, 4, 5})) << "added to what the new buckets took over";
    });
}

TEST(Reducer, TellsAllRanksWhereTheyGoBackThroughUnlikeModules)
{
    std::vector<Ref<Group>> groups = init_threads(3, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model first({8}), second({8});
        first.join(Ref<Group>::share(&group));
        second.join(Ref<Group>::share(&group));
        first.go_back({1});
        second.go_back({1});
        (group.rank() == 1 ? second : first).go_back({1});
    });
    for (const std::string &each : told) {
        EXPECT_NE(each.find("rank 0"), std::string::npos) << each;
        EXPECT_NE(each.find("module 1 of this group"), std::string::npos) << each;
        EXPECT_NE(each.find("rank 1"), std::string::npos) << each;
        EXPECT_NE(each.find("module 2"), std::string::npos) << each;
    }
}

TEST(Reducer, AddsUpWithoutSyncAndReducesTheSum)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3, 17});
        model.join(group, kSmall);
        const double own = group->rank() + 1;
        model.reducer->set_sync(false);
        model.go_back({own, 0});
        model.go_back({own, 0});
        EXPECT_EQ(model.grads(), (Values{2 * own, -1}));
        model.reducer->set_sync(true);
        model.go_back({0, own});  // the first one is not used in this one
        EXPECT_EQ(model.grads(), (Values{3, 1.5}));
        model.go_back({own, own});  // a second backward before a step adds to the mean
        EXPECT_EQ(model.grads(), (Values{4.5, 3}));
    });
}

TEST(Reducer, LeavesWhatNobodyUsedAloneAndSharesWhatSomeDid)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3, 17, 9});
        model.join(group, kSmall);
        const bool is_first = group->rank() == 0;
        for (int step = 0; step < 2; ++step) {
            model.go_back({3, is_first ? 6. : 0, 0});
            EXPECT_EQ(model.grads(), (Values{3, 2, -1}));
            model.forget_grads();
        }
    });
}

TEST(Reducer, WeighsRanks)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3, 17});
        model.join(group, kSmall);
        const double own = group->rank() + 1;
        for (int step = 0; step < 2; ++step) {
            model.reducer->set_weight(own * 5);
            model.go_back({own, 2});
            const Values grads = model.grads();
            EXPECT_NEAR(grads[0], 14. / 6, 1e-15);
            EXPECT_NEAR(grads[1], 2, 1e-15);
            model.forget_grads();
        }
        for (const double wrong : {0., -1., std::nan(""), HUGE_VAL})
            expect_error(YOKE_E_VALUE, {"set_weight", "weight"},
                         [&] { model.reducer->set_weight(wrong); });
    });
}

TEST(Reducer, AGradientThatWasThereBeforeIsAddedTo)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3, 17});
        model.go_back({1, 2});
        model.join(group, kSmall);
        model.go_back({10, 20});
        EXPECT_EQ(model.grads(), (Values{11, 22}));
        model.reducer->detach();
        model.go_back({1, 1});
        EXPECT_EQ(model.grads(), (Values{12, 23}));
    });
}

TEST(Reducer, TakesTheValuesOfRankZero)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        {
            const NoGrad no_grad;
            ops::fill_(*model.params[0], group->rank() + 5.);
        }
        const Tensor buffer = filled(2, static_cast<float>(group->rank()));
        std::shared_ptr<Reducer> reducer =
            Reducer::make(group, {{"w", model.params[0]}}, {{"mean", buffer}}, {});
        EXPECT_EQ(reinterpret_cast<const double *>(model.params[0]->data)[2], 5);
        EXPECT_EQ(values(buffer), (std::vector<float>{0, 0}));
        reducer->detach();
    });
}

TEST(Reducer, RefusesUnlikeModelsAlikeOnAllRanks)
{
    std::vector<Ref<Group>> groups = init_threads(3, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model model({3, group.rank() == 2 ? 5 : 4, 7});
        model.join(Ref<Group>::share(&group));
    });
    EXPECT_EQ(told[0], told[1]);
    EXPECT_EQ(told[0], told[2]);
    for (const char *part : {"YOKE_E_VALUE", "'p1' is", "[4]", "on rank 0", "[5]", "on rank 2 ("})
        EXPECT_NE(told[0].find(part), std::string::npos) << part << " in " << told[0];
}

TEST(Reducer, WhatOneRankIsRefusedIsToldToThoseThatWaitForIt)
{
    std::vector<Ref<Group>> groups = init_threads(2, 0.5, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model model({3});
        if (group.rank() == 1) set_requires_grad(*model.params[0], false);
        model.join(Ref<Group>::share(&group));
    });
    EXPECT_NE(told[1].find("'p0'"), std::string::npos) << told[1];
    for (const char *part : {"YOKE_E_TIMEOUT", "rank 1 (", "'p0'", "requires none"})
        EXPECT_NE(told[0].find(part), std::string::npos) << part << " in " << told[0];
}

TEST(Reducer, ARankWithoutDataAnswersUntilAllAreOut)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3, 17, 9});
        model.join(group, kSmall);
        const double own = group->rank() + 1;
        model.reducer->begin_join();
        for (int step = 0; step < group->rank(); ++step) {  // rank 0 has none, rank 2 two
            model.go_back({own, step ? 0 : own, 0});
            EXPECT_EQ(model.grads(), step ? (Values{3, -1, -1}) : (Values{2.5, 2.5, -1}));
            model.forget_grads();
        }
        {
            const NoGrad no_grad;
            ops::fill_(*model.params[0], own);
        }
        const Ref<State> last = model.reducer->end_join(State::make(int64_t{group->rank()}));
        EXPECT_EQ(*last->get_if<int64_t>(), 2);
        EXPECT_EQ(reinterpret_cast<const double *>(model.params[0]->data)[2], 3);
        model.forget_grads();
        model.go_back({own, 0, 0});  // as before
        EXPECT_EQ(model.grads()[0], 2);
    });
}

TEST(Reducer, GoesOnInAnotherGroupFromTheRankThatIsFurthest)
{
    // What each of three has begun after its last backward, and who of the two others is furthest.
    for (const auto &[has_gone_on, furthest] :
         {std::pair(Values{0, 0, 1}, 2), {{1, 0, 0}, 0}, {{0, 0, 0}, 0}})
        on_ranks(3, [&](const Ref<Group> &group) {
            Model model({3, 17});
            model.join(group, kSmall);
            model.reducer->set_weight(group->rank() + 1);
            model.go_back({1, 1});
            if (has_gone_on[static_cast<size_t>(group->rank())] != 0) model.reducer->check();
            {
                const NoGrad no_grad;
                ops::fill_(*model.params[1], static_cast<double>(group->rank()));
            }
            const Ref<Group> smaller = group->split(group->rank() == 1 ? -1 : 0, 0);
            if (!smaller.present()) return;
            const auto [made, state] =
                model.reducer->regroup(smaller, State::make(int64_t{group->rank()}));
            EXPECT_EQ(model.grads(), (Values{-1, -1}));
            EXPECT_EQ(*state->get_if<int64_t>(), furthest);
            EXPECT_EQ(reinterpret_cast<const double *>(model.params[1]->data)[16], furthest);
            model.reducer = made;
            model.go_back({smaller->rank() * 4., 1});
            EXPECT_EQ(model.grads(), (Values{3, 1})) << "of weights 1 and 3";
        });
}

TEST(Reducer, OfRanksThatHaveCalledNothingSinceTheOneWithAllOfTheStepIsFurthest)
{
    // How many of three parameters, of which nobody uses the last, each of two has written since its last backward.
    for (const auto &[written, furthest] : {std::pair(Values{1, 2}, 1),
                                            {{2, 1}, 0},
                                            {{0, 2}, 1},
                                            {{0, 1}, 0},
                                            {{1, 0}, 1},
                                            {{2, 2}, 0}})
        on_ranks(2, [&](const Ref<Group> &group) {
            Model model({3, 17, 2});
            model.join(group, kSmall);
            model.go_back({1, 1, 0});
            const auto rank = static_cast<size_t>(group->rank());
            for (size_t i = 0; static_cast<double>(i) < written[rank]; ++i) {
                const NoGrad no_grad;
                ops::fill_(*model.params[i], group->rank() + 5.);
            }
            const auto [made, state] =
                model.reducer->regroup(group, State::make(int64_t{group->rank()}));
            EXPECT_EQ(*state->get_if<int64_t>(), furthest) << written[0] << " " << written[1];
            made->detach();
        });
}

TEST(Reducer, OfAGroupIsOneAlone)
{
    std::vector<Ref<Group>> groups = init_threads(1, 20, kCall);
    const auto of = [&] { return Reducer::of(*groups[0], "join"); };
    expect_error(YOKE_E_STATE, {"join", "no module's gradients"}, of);
    Model one({3});
    one.join(groups[0]);
    EXPECT_EQ(of(), one.reducer);
    {
        Model other({3});
        other.join(groups[0]);
        expect_error(YOKE_E_STATE, {"join", "2 modules"}, of);
    }
    EXPECT_EQ(of(), one.reducer);
}

TEST(Reducer, ABackwardThatFailsEndsThoseOfTheOthers)
{
    std::vector<Ref<Group>> groups = init_threads(3, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model model({3, 17});
        model.join(Ref<Group>::share(&group), kSmall);
        if (group.rank() == 1) set_requires_grad(*model.params[0], false);
        try {
            model.go_back({1, 1});
        } catch (const Error &error) {
            model.forget_grads();
            set_requires_grad(*model.params[0], true);
            model.go_back({2, 3});
            EXPECT_EQ(model.grads(), (Values{2, 3})) << "of this rank alone, as without the others";
            throw;
        }
    });
    EXPECT_NE(told[1].find("'p0' was frozen"), std::string::npos) << told[1];
    for (const size_t rank : {0, 2})
        for (const char *part :
             {"YOKE_E_CANCELLED", "rank 1 (", "its backward failed", "'p0' was frozen"})
            EXPECT_NE(told[rank].find(part), std::string::npos) << part << " in " << told[rank];
}

}  // namespace
}  // namespace yoke::test
