// Ranks that go on from the one that is furthest: core/parallel/regroup.cpp, join.cpp.
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
        for (int step = 0; step < group->rank(); ++step) {  // rank 0 has none, rank 2 two
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
                regroup(*model.reducer, group, State::make(int64_t{group->rank()}));
            EXPECT_EQ(*state->get_if<int64_t>(), furthest) << written[0] << " " << written[1];
            made->detach();
        });
}

// Of 4 ranks in two groups, and those that come together from them.
TEST(Reducer, OfRanksOfUnlikeGroupsTheOneThatHasMadeMostStepsIsFurthest)
{
    struct Case {
        Values steps;  // of each group
        // Of each rank since: how many of two parameters it has written, and whether it has begun anything.
        Values written, has_gone_on;
        int64_t furthest;
    };
    const std::vector<Case> cases = {
        {{3, 2}, {2, 2, 2, 2}, {0, 0, 1, 1}, 0},
        {{2, 3}, {2, 2, 2, 2}, {1, 1, 0, 0}, 2},
        {{3, 2}, {1, 2, 2, 2}, {0, 0, 1, 1}, 1},
        {{3, 2}, {1, 1, 2, 2}, {0, 0, 0, 1}, 3},  // those with three are amid the last one
        {{3, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, 0},
        {{4, 2}, {1, 1, 2, 2}, {0, 0, 1, 1}, 0},
        {{2, 2}, {2, 2, 2, 2}, {0, 0, 0, 1}, 3},
        {{2, 2}, {1, 2, 1, 1}, {1, 0, 0, 0}, 1},  // half a step shows, whatever was begun since
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

// Counts what is logged with such words, and does something the first time.
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

// That steps of a join are lost is logged amid a regroup, which a group that ends then fails.
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
            for (int step = 0; step < 2; ++step) model.go_back({1, 1});  // one is through on all
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

// The node of what a recorded op has written is that op's, no leaf.
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
