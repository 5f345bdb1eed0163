// Ranks with parameters written behind calls that a device did not end: core/parallel/regroup.cpp.
#include "core/parallel/regroup.h"
#include "tests/core/comm/late_backend.h"
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

// Model in host memory. For each bucket its hook also makes a call on a device. The device ends the call while
// `fake_streams.reached` is true.
struct LateModel : Model {
    explicit LateModel(Group &of)
        : Model((set_current_device(open_device("cpu")), std::vector<int64_t>{3, 17})),
          group(Ref<Group>::share(&of))
    {
        hook = [](const FullBucket &bucket) {
            bucket.group.run(reduce_all(filled_on(device_of(bucket.group), 4, 1)), false);
            return bucket.group.run(detail::mean_of(bucket.memory), true);
        };
        join(group, kSmall);
    }
    void go_back() const { Model::go_back({1, 1}); }
    void step() const
    {
        const NoGrad no_grad;
        for (const Tensor &each : params) ops::add_(*each, 1.0);
    }
    void load(double value) const
    {
        const NoGrad no_grad;
        for (const Tensor &each : params) ops::copy_(*each, *ops::full({}, value, YOKE_F64));
    }
    double value() const { return reinterpret_cast<const double *>(params[1]->data)[16]; }
    // Returns the rank whose values all have from now on.
    int64_t regroup(const Ref<Group> &next)
    {
        const auto [made, state] =
            yoke::regroup(*reducer, next, State::make(int64_t{group->rank()}));
        reducer = made;
        return *state->get_if<int64_t>();
    }
    void expect_refused(const Ref<Group> &next)
    {
        const double before = value();
        expect_error(YOKE_E_STATE, {"regroup", "did not finish", "rank 0", "it is lost", "load"},
                     [&] { regroup(next); });
        EXPECT_EQ(value(), before);
    }

    const Ref<Group> group;
};

using Body = std::function<void(LateModel &, const Ref<Group> &next)>;

// Runs body(model, next) on two ranks, each with a card; `next` is a group to go on in.
void on_two_cards(const Body &body)
{
    in_fresh_process_with_engine([&](std::vector<Ref<Group>> &groups) {
        std::vector<Ref<Group>> others = init_threads(2, 20, kCall);
        const auto told = each_rank(groups, [&](Group &group) {
            LateModel model(group);
            body(model, others[static_cast<size_t>(group.rank())]);
        });
        EXPECT_EQ(told, std::vector<std::string>(2));
        fake_streams.reached = true;
    });
}

// Ends the group of the model when both ranks are there.
void lose(const LateModel &model, const Ref<Group> &next)
{
    next->run(barrier(), false);
    if (model.group->rank() == 0) model.group->abort("it is lost");
    next->run(barrier(), false);
}

TEST(Lost, IfAllHaveWrittenBehindLostCallsAllAreToldAndGoOnOnceTheyHaveLoaded)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        model.step();
        lose(model, next);
        model.expect_refused(next);
        model.expect_refused(next);
        model.load(model.group->rank() + 5.);
        EXPECT_EQ(model.regroup(next), 0);
        EXPECT_EQ(model.value(), 5);
        fake_streams.reached = true;
        model.Model::go_back({4, 2});
        EXPECT_EQ(model.grads(), (Values{4, 2}));
    });
}

TEST(Lost, WhoHasWrittenNothingBehindLostCallsIsTakenBeforeWhoHas)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        if (model.group->rank() == 0) model.step();
        lose(model, next);
        EXPECT_EQ(model.regroup(next), 1);
        EXPECT_EQ(model.value(), 1);
    });
}

TEST(Lost, CallsThatHaveEndedBeforeTheGroupAreGood)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        model.go_back();
        model.group->run(barrier(), false);  // ends behind calls of the device
        if (model.group->rank() == 0) model.step();
        lose(model, next);
        EXPECT_EQ(model.regroup(next), 0);
        EXPECT_EQ(model.value(), 2);
    });
}

TEST(Lost, AStepBeforeTheLastBackwardCountsToo)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        model.step();
        model.go_back();
        model.go_back();
        lose(model, next);
        model.expect_refused(next);
    });
}

TEST(Lost, ALostBackwardBehindAStepThatIsGoodCostsNothing)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        model.go_back();
        model.group->run(barrier(), false);
        model.step();
        fake_streams.reached = false;
        model.go_back();
        lose(model, next);
        EXPECT_EQ(model.regroup(next), 0);
        EXPECT_EQ(model.value(), 2);
    });
}

TEST(Lost, WhatIsLoadedOnceARankKnowsOfTheLossIsGood)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        model.step();
        lose(model, next);
        EXPECT_THROW(model.reducer->check(), Error);
        model.load(5);
        EXPECT_EQ(model.regroup(next), 0);
        EXPECT_EQ(model.value(), 5);
    });
}

TEST(Lost, AStepOnceARankKnowsOfTheLossIsNoLoad)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        lose(model, next);
        EXPECT_THROW(model.reducer->check(), Error);
        model.step();
        model.expect_refused(next);
    });
}

TEST(Lost, WhatWasLoadedBeforeTheLossIsNoLoad)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        model.load(5);  // as a script's own optimizer may
        lose(model, next);
        model.expect_refused(next);
    });
}

TEST(Lost, AGroupThatGoesOnIsWaitedFor)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        next->run(barrier(), false);
        model.step();
        if (model.group->rank() == 1) fake_streams.reached = true;
        EXPECT_EQ(model.regroup(next), 0);
        EXPECT_EQ(model.value(), 2);
    });
}

TEST(Lost, AShrinkOfAGroupThatGoesOnLetsItsCallsEnd)
{
    on_two_cards([](LateModel &model, const Ref<Group> &next) {
        fake_streams.reached = false;
        model.go_back();
        model.step();
        next->run(barrier(), false);
        fake_streams.reached = true;
        const Ref<Group> same = model.group->shrink(20);
        EXPECT_EQ(model.regroup(same), 0);
        EXPECT_EQ(model.value(), 2);
    });
}

// A third rank has made fewer steps. If the group took its values, the other ranks would lose all their steps.
TEST(Lost, ARankOfAnotherGroupThatIsFartherBehindIsNotTaken)
{
    in_fresh_process_with_engine([](std::vector<Ref<Group>> &groups) {
        std::vector<Ref<Group>> all = init_threads(3, 20, kCall), own = init_threads(1, 20, kCall);
        std::vector<Ref<Group>> ranks = {groups[0], groups[1], own[0]};
        const auto told = each_rank(ranks, [&](Group &group) {
            const bool is_new = group.size() == 1;
            LateModel model(group);
            const Ref<Group> &to = all[is_new ? 2 : static_cast<size_t>(group.rank())];
            fake_streams.reached = false;
            if (!is_new) model.go_back();
            if (!is_new) model.step();
            to->run(barrier(), false);
            if (!is_new && group.rank() == 0) group.abort("it is lost");
            to->run(barrier(), false);
            model.expect_refused(to);
            if (!is_new) model.load(5);
            (void)model.regroup(to);
            EXPECT_EQ(model.value(), 5);
        });
        EXPECT_EQ(told, std::vector<std::string>(3));
        fake_streams.reached = true;
    });
}

}  // namespace
}  // namespace yoke::test
