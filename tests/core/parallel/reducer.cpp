// Gradients of several ranks become their mean while backward runs: core/parallel/reducer.cpp, buckets.cpp.
#include "core/parallel/reducer.h"
#include "tests/core/comm/model.h"

#include <cmath>

namespace yoke::test {
namespace {

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
        model.go_back({0, own});  // the first parameter is not used in this pass
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
            expect_error(YOKE_E_VALUE, {"set_weight", "'n'"},
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

TEST(Reducer, TakesFrozenParametersOfRankZeroAndReducesTheOthers)
{
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3, 4, 5});
        set_requires_grad(*model.params[1], false);
        const Tensor never = filled(2, static_cast<float>(group->rank() + 7));
        {
            const NoGrad no_grad;
            ops::fill_(*model.params[1], group->rank() + 5.);
        }
        model.reducer = Reducer::make(group,
                                      {{"p0", model.params[0]},
                                       {"p1", model.params[1]},
                                       {"never", never},
                                       {"p2", model.params[2]}},
                                      {}, {kSmall, "", nullptr});
        EXPECT_EQ(reinterpret_cast<const double *>(model.params[1]->data)[3], 5);
        EXPECT_EQ(values(never), (std::vector<float>{7, 7}));
        EXPECT_EQ(model.reducer->bucket_names(),
                  (std::vector<std::vector<std::string>>{{"p0", "p2"}}));
        model.go_back({group->rank() + 1., 9, 4});
        EXPECT_EQ(model.grads(), (Values{1.5, -1, 4}));
    });
}

// Returns the number of broadcasts that the group has made since `before` records.
int64_t broadcasts_since(const Group &group, size_t before)
{
    const std::vector<CallRecord> all = group.records();
    return std::count_if(all.begin() + static_cast<std::ptrdiff_t>(before), all.end(),
                         [](const CallRecord &each) { return each.op == YOKE_COMM_BROADCAST; });
}

TEST(Reducer, SendsSmallBuffersOfADtypeTogether)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3});
        const int64_t square[] = {2, 3}, turned[] = {1, 2}, long_[] = {50000};
        std::vector<Tensor> all;
        const double own = group->rank() + 1.;
        for (int i = 0; i < 4; ++i) all.push_back(filled(4 + i, static_cast<float>(own + i)));
        all.push_back(ops::full({}, own, YOKE_I64));
        all.push_back(ops::full(long_, own, YOKE_F32));
        all.push_back(make_view(*ops::full(square, own, YOKE_F32), {{3, 2}}, turned, 0));
        all.push_back(ops::full({{0}}, own, YOKE_F32));
        all.push_back(ops::full({{2}}, 1.0, YOKE_BOOL));
        std::vector<ModuleTensor> params{{"p", model.params[0]}}, buffers;
        for (size_t i = 0; i < all.size(); ++i)
            buffers.push_back({"b" + std::to_string(i), all[i]});
        model.reducer = Reducer::make(group, params, buffers, {});
        model.go_back({1});
        const size_t before = group->records().size();
        const NoGrad no_grad;
        for (const Tensor &each : all)
            if (each->dtype != YOKE_BOOL) ops::fill_(*each, own * 7);
        set_grad_enabled(true);
        model.go_back({1});
        EXPECT_EQ(broadcasts_since(*group, before), 4) << "float32, a long one, int64, bool";
        for (const Tensor &each : all) {
            const Tensor wide = ops::contiguous(*ops::cast(*each, YOKE_F64));
            for (int64_t i = 0; i < wide->numel; ++i)
                EXPECT_EQ(reinterpret_cast<const double *>(wide->data)[i],
                          each->dtype == YOKE_BOOL ? 1 : 7);
        }
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

TEST(Reducer, RefusesUnlikeOptionsAlikeOnAllRanks)
{
    struct Option {
        const char *name, *first, *second;
        ReducerOptions of[2];
    };
    const BucketHook hook = [](const FullBucket &) { return Ref<Work>(); };
    const Option options[] = {
        {"bucket_mb", "0.00012207, 128 bytes", "25, 26214400 bytes", {{kSmall, "", {}}, {}}},
        {"compression", "none", "'fp16'", {{}, {{}, "fp16", {}}}},
        {"compression", "a function", "'bf16'", {{{}, "", hook}, {{}, "bf16", {}}}},
        {"compression",
         "'powersgd:rank=4,start=2,rate=2'",
         "'powersgd:rank=4,start=3,rate=2'",
         {{{}, "powersgd:rank=4,start=2", {}}, {{}, "powersgd:start=3,rank=4", {}}}}};
    for (const Option &each : options) {
        std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
        const auto told = each_rank(groups, [&](Group &group) {
            Model model({3});
            Reducer::make(Ref<Group>::share(&group), {{"p", model.params[0]}}, {},
                          each.of[group.rank()]);
        });
        for (const std::string &one : told)
            for (const std::string &part :
                 {std::string("YOKE_E_VALUE"),
                  std::string("option '") + each.name + "' is " + each.first,
                  std::string("on rank 0, "), std::string(each.second), std::string("on rank 1 (")})
                EXPECT_NE(one.find(part), std::string::npos) << part << " in " << one;
    }
    on_ranks(2, [](const Ref<Group> &group) {
        Model model({3});
        model.compression = group->rank() ? "powersgd:rank=1,start=10" : "powersgd";
        model.join(group);
    });
}

TEST(Reducer, RefusesParametersThatAreUnlikeFrozenAndFewer)
{
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    const auto frozen = each_rank(groups, [](Group &group) {
        Model model({3, 4});
        if (group.rank() == 1) set_requires_grad(*model.params[0], false);
        model.join(Ref<Group>::share(&group));
    });
    groups = init_threads(2, 20, kCall);
    const auto fewer = each_rank(groups, [](Group &group) {
        Model model({3, 4});
        const Tensor buffer = filled(2, 0.F);
        std::vector<ModuleTensor> params{{"p0", model.params[0]}};
        if (group.rank() == 1) params.push_back({"p1", model.params[1]});
        Reducer::make(Ref<Group>::share(&group), params, {{"mean", buffer}}, {});
    });
    for (const std::string &each : frozen)
        EXPECT_NE(
            each.find("on rank 0, the parameter 'p0' is [3] float64 on cpu and frozen on rank 1"),
            std::string::npos)
            << each;
    for (const std::string &each : fewer)
        EXPECT_NE(
            each.find(
                "there is none on rank 0, the parameter 'p1' is [4] float64 on cpu on rank 1"),
            std::string::npos)
            << each;
}

TEST(Reducer, WhatOneRankIsRefusedIsToldToThoseThatWaitForIt)
{
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model model({3});
        if (group.rank() == 1) model.params[0] = ops::mul(*model.params[0], 2.0);
        model.join(Ref<Group>::share(&group));
    });
    EXPECT_NE(told[1].find("'p0'"), std::string::npos) << told[1];
    for (const char *part : {"YOKE_E_VALUE", "rank 1 (", "was refused:", "'p0'", "made by an op"})
        EXPECT_NE(told[0].find(part), std::string::npos) << part << " in " << told[0];
}

TEST(Reducer, OfAGroupIsOneAlone)
{
    std::vector<Ref<Group>> groups = init_threads(1, 20, kCall);
    const auto of = [&] { return Reducer::of(*groups[0], "join"); };
    expect_error(YOKE_E_STATE, {"join", "has no DistributedDataParallel"}, of);
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

TEST(Reducer, WhatIsRecordedAfterAFailureWasToldIsThisRanksAlone)
{
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    std::vector<std::string> told = each_rank(groups, [](Group &group) {
        Model model({3});
        model.join(Ref<Group>::share(&group));
        Tensor before = ops::sum(*model.params[0]);
        EXPECT_THROW(group.run({YOKE_COMM_ALL_REDUCE, YOKE_REDUCE_SUM, -1,
                                filled(2 + group.rank(), 0.F), filled(2 + group.rank(), 0.F)},
                               false),
                     Error);
        model.go_back({2});
        EXPECT_EQ(model.grads(), (Values{2}));
        yoke_tensor *root = before.get();
        backward({&root, 1}, {}, false);
    });
    for (const std::string &each : told)
        EXPECT_NE(each.find("all_reduce"), std::string::npos)
            << "what was recorded before: " << each;
    groups = init_threads(2, 20, kCall);
    told = each_rank(groups, [](Group &group) {
        Model model({3});
        model.join(Ref<Group>::share(&group));
        if (group.rank() == 0) group.abort("enough");
        model.go_back({2});
        EXPECT_EQ(model.grads(), (Values{2}));
    });
    EXPECT_EQ(told[0], "");
    EXPECT_NE(told[1].find("enough"), std::string::npos) << told[1];
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
