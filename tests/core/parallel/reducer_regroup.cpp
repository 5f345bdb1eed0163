// Ranks that go on from the furthest rank: core/parallel/regroup.cpp, join.cpp.
#include "core/base/log.h"
#include "core/parallel/join.h"
#include "core/parallel/regroup.h"
#include "tests/core/comm/model.h"

#include <atomic>
#include <cstring>

namespace yoke::test {
namespace {

TEST(Reducer, ARankWithoutDataAnswersUntilAllAreOut)
{
    on_ranks(3, [](const Ref<Group> &group) {
        Model model({3, 17, 9});
        model.join(group, kSmall);
        const double own = group->rank() + 1;
        begin_join(*model.reducer);
        for (int step = 0; step < group->rank(); ++step) {  // rank 0 makes 0 steps, rank 2 makes 2
            model.go_back({own, step ? 0 : own, 0});
            EXPECT_EQ(model.grads(), step ? (Values{3, -1, -1}) : (Values{2.5, 2.5, -1}));
            model.forget_grads();
        }
        {
            const NoGrad no_grad;
            ops::fill_(*model.params[0], own);
        }
        const Ref<State> last = end_join(*model.reducer, State::make(int64_t{group->rank()}));
        EXPECT_EQ(*last->get_if<int64_t>(), 2);
        EXPECT_EQ(reinterpret_cast<const double *>(model.params[0]->data)[2], 3);
        model.forget_grads();
        model.go_back({own, 0, 0});  // as before
        EXPECT_EQ(model.grads()[0], 2);
    });
}

TEST(Reducer, GoesOnInAnotherGroupFromTheRankThatIsFurthest)
{
    // Whether each of three ranks has gone on after its last backward, and the furthest of ranks 0 and 2.
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
                regroup(*model.reducer, smaller, State::make(int64_t{group->rank()}));
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
    // How many of three parameters each of two ranks has written since its last backward. No rank uses the third
    // parameter.
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
                regroup(*model.reducer, group, State::make(int64_t{group->rank()}));
            EXPECT_EQ(*state->get_if<int64_t>(), furthest) << written[0] << " " << written[1];
            made->detach();
        });
}

// 4 ranks of two groups come together in a new group.
TEST(Reducer, OfRanksOfUnlikeGroupsTheOneThatHasMadeMostStepsIsFurthest)
{
    struct Case {
        Values steps;  // for each group
        // State of each rank since: how many of two parameters are written, and whether the rank has gone on.
        Values written, has_gone_on;
        int64_t furthest;
    };
    const std::vector<Case> cases = {
        {{3, 2}, {2, 2, 2, 2}, {0, 0, 1, 1}, 0},
        {{2, 3}, {2, 2, 2, 2}, {1, 1, 0, 0}, 2},
        {{3, 2}, {1, 2, 2, 2}, {0, 0, 1, 1}, 1},
        {{3, 2}, {1, 1, 2, 2}, {0, 0, 0, 1}, 3},  // ranks 0 and 1 are amid their third step
        {{3, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, 0},
        {{4, 2}, {1, 1, 2, 2}, {0, 0, 1, 1}, 0},
        {{2, 2}, {2, 2, 2, 2}, {0, 0, 0, 1}, 3},
        {{2, 2}, {1, 2, 1, 1}, {1, 0, 0, 0}, 1},  // half a step shows in any case
    };
    for (const Case &one : cases)
        on_ranks(4, [&](const Ref<Group> &group) {
            const auto rank = static_cast<size_t>(group->rank());
            Model model({3, 17});
            model.join(group->split(group->rank() / 2, 0), kSmall);
            for (int step = 0; step < one.steps[rank / 2]; ++step) model.go_back({1, 1});
            for (size_t i = 0; static_cast<double>(i) < one.written[rank]; ++i) {
                const NoGrad no_grad;
                ops::fill_(*model.params[i], group->rank() + 5.);
            }
            if (one.has_gone_on[rank] != 0) model.reducer->check();
            const auto [made, state] =
                regroup(*model.reducer, group, State::make(int64_t{group->rank()}));
            EXPECT_EQ(*state->get_if<int64_t>(), one.furthest) << &one - cases.data();
            made->detach();
        });
}

// Counts log messages with these words, and calls a function at the first message.
class Heard {
public:
    Heard(const char *words, std::function<void()> first = {})
        : words_(words), first_(std::move(first)), id_(add_log_callback(note, this, nullptr))
    {
    }
    ~Heard() { remove_log_callback(id_); }
    Heard(const Heard &) = delete;
    Heard &operator=(const Heard &) = delete;
    int count() const { return count_; }

private:
    static void note(void *user, int32_t, const char *message)
    {
        auto *const self = static_cast<Heard *>(user);
        if (strstr(message, self->words_) && self->count_++ == 0 && self->first_) self->first_();
    }
    const char *const words_;
    const std::function<void()> first_;
    std::atomic<int> count_{0};
    const int64_t id_;
};

// A regroup logs that steps of a join are lost. At this message the test ends the group, so the regroup fails.
TEST(Reducer, OneModuleThatIsRegroupedAgainIsNotToldOfOthers)
{
    Ref<Group> failing;
    const Heard of_others("other modules"), of_losses("are lost", [&] { failing->abort("lost"); });
    on_ranks(3, [&](const Ref<Group> &group) {
        const bool is_out = group->rank() != 1;
        const Ref<Group> first = group->split(is_out ? 0 : -1, 0),
                         second = group->split(is_out ? 0 : -1, 0);
        Model model({3, 17});
        model.join(group, kSmall);
        begin_join(*model.reducer);
        if (!is_out) {
            for (int step = 0; step < 2; ++step) model.go_back({1, 1});  // the first is complete
            return group->abort("it is lost");
        }
        EXPECT_THROW(end_join(*model.reducer, State::make()), Error);
        if (group->rank() == 0) failing = first;
        EXPECT_THROW(regroup(*model.reducer, first, State::make()), Error);
        model.reducer = regroup(*model.reducer, second, State::make()).reducer;
    });
    EXPECT_EQ(of_losses.count(), 2);
    EXPECT_EQ(of_others.count(), 0);
}

// A tensor written by a recorded op has the op's node, and is no leaf.
TEST(Reducer, AParameterThatAnOpHasWrittenLeavesItsLeafToIt)
{
    on_ranks(1, [](const Ref<Group> &group) {
        Model model({3, 3});
        model.join(group, kSmall);
        set_requires_grad(*model.params[1], false);
        ops::copy_(*model.params[1], *ops::mul(*model.params[0], 2.0));
        EXPECT_FALSE(is_leaf(*model.params[1]));
        const auto first = [&] {
            const Tensor grad = grad_of(*model.params[0], "a test");
            return grad.present() ? reinterpret_cast<const double *>(grad->data)[2] : -1;
        };
        model.go_back({3, 0});
        EXPECT_EQ(first(), 3);
        model.reducer = regroup(*model.reducer, group, State::make()).reducer;
        EXPECT_EQ(first(), -1);
        model.go_back({4, 0});
        EXPECT_EQ(first(), 4);
    });
}

}  // namespace
}  // namespace yoke::test
