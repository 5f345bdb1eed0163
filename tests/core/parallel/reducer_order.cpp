// Several modules of a group in a backward pass that ranks go through in different orders:
// core/parallel/step_header.cpp.
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

void go_back(const Tensor &first, const Tensor &second)
{
    const Tensor sum = ops::add(*first, *second);
    yoke_tensor *root = sum.get();
    backward({&root, 1}, {}, false);
}

// Body of a test with two modules of a group; the second module joins last.
using Pair = std::function<void(const Ref<Group> &, Model &, Model &)>;

std::vector<std::string> on_pairs(int32_t size, const Pair &run, const std::string &kind = "")
{
    std::vector<Ref<Group>> groups = init_threads(size, 5, kCall);
    return each_rank(groups, [&](Group &group) {
        const auto held = Ref<Group>::share(&group);
        Model one({8, 8, 8}), two({8, 8, 8});
        one.compression = two.compression = kind;
        one.join(held, kSmall);
        two.join(held, kSmall);
        run(held, one, two);
    });
}

TEST(SeveralReducers, GiveTheirBucketsInOneOrderWhateverTheGraphIs)
{
    for (const char *kind : {"", "bf16", "powersgd:rank=1,start=2,rate=1"}) {
        const auto told = on_pairs(
            3,
            [](const Ref<Group> &group, Model &one, Model &two) {
                for (int step = 1; step <= 3; ++step) {
                    const double own = (group->rank() + 1) * step;
                    const Tensor of_one = one.loss({own, 2 * own, 4 * own});
                    const Tensor of_two = two.loss({8 * own, 16 * own, 32 * own});
                    (group->rank() == 1) == (step == 2) ? go_back(of_one, of_two)
                                                        : go_back(of_two, of_one);
                    const double mean = 2 * step;
                    EXPECT_EQ(one.grads(), (Values{mean, 2 * mean, 4 * mean}));
                    EXPECT_EQ(two.grads(), (Values{8 * mean, 16 * mean, 32 * mean}));
                    one.forget_grads();
                    two.forget_grads();
                }
            },
            kind);
        EXPECT_EQ(told, std::vector<std::string>(3)) << kind;
    }
}

TEST(SeveralReducers, WaitForEachOtherWhereOneRankLeavesParametersOut)
{
    const auto told = on_pairs(2, [](const Ref<Group> &group, Model &one, Model &two) {
        const bool is_first = group->rank() == 0;
        for (int step = 0; step < 2; ++step) {
            go_back(one.loss({2, 4, is_first ? 0. : 6.}), two.loss({2, is_first ? 6. : 0, 0}));
            EXPECT_EQ(one.grads(), (Values{2, 4, 3}));
            EXPECT_EQ(two.grads(), (Values{2, 3, -1}));
            one.forget_grads();
            two.forget_grads();
        }
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(SeveralReducers, TakePartAloneToo)
{
    const auto told = on_pairs(2, [](const Ref<Group> &group, Model &one, Model &two) {
        const double own = group->rank() + 1;
        one.reducer->set_sync(false);
        go_back(one.loss({own, 0, 0}), two.loss({own, own, own}));
        EXPECT_EQ(one.grads(), (Values{own, -1, -1}));
        EXPECT_EQ(two.grads(), (Values{1.5, 1.5, 1.5}));
        one.reducer->set_sync(true);
        one.go_back({own, own, own});
        EXPECT_EQ(one.grads(), (Values{3, 1.5, 1.5}));
        go_back(one.loss({own, 0, 0}), two.loss({own, 0, 0}));
        EXPECT_EQ(one.grads(), (Values{4.5, 1.5, 1.5}));
        EXPECT_EQ(two.grads(), (Values{3, 1.5, 1.5}));
    });
    EXPECT_EQ(told, std::vector<std::string>(2));
}

TEST(SeveralReducers, TellAllRanksWhereOneGoesThroughFewer)
{
    const auto told = on_pairs(3, [](const Ref<Group> &group, Model &one, Model &two) {
        const Tensor of_one = one.loss({1, 1, 1}), of_two = two.loss({1, 1, 1});
        group->rank() == 1 ? go_back(of_two, of_two) : go_back(of_one, of_two);
    });
    for (const std::string &each : told)
        for (const char *part : {"rank 0", "module 2 of this group and next through module 1",
                                 "rank 1", "module 2 and through no other"})
            EXPECT_NE(each.find(part), std::string::npos) << part << " in " << each;
}

TEST(SeveralReducers, TellAllRanksWhereOneGoesThroughTheFirstAlone)
{
    const auto told = on_pairs(2, [](const Ref<Group> &group, Model &one, Model &two) {
        const Tensor of_one = one.loss({1, 1, 1}), of_two = two.loss({1, 1, 1});
        group->rank() == 1 ? go_back(of_one, of_one) : go_back(of_one, of_two);
    });
    for (const std::string &each : told)
        for (const char *part : {"rank 0", "module 2 of this group", "rank 1", "module 1"})
            EXPECT_NE(each.find(part), std::string::npos) << part << " in " << each;
}

// Ranks in two groups go through both groups in the same order too.
TEST(SeveralReducers, OfUnlikeGroupsDoNotWaitForEachOther)
{
    on_ranks(2, [](const Ref<Group> &group) {
        const Ref<Group> other = group->split(0, -group->rank());
        Model one({8, 8}), two({8, 8});
        one.join(group, kSmall);
        two.join(other, kSmall);
        const double own = group->rank() + 1;
        const Tensor of_one = one.loss({own, own}), of_two = two.loss({own, 2 * own});
        group->rank() ? go_back(of_one, of_two) : go_back(of_two, of_one);
        EXPECT_EQ(one.grads(), (Values{1.5, 1.5}));
        EXPECT_EQ(two.grads(), (Values{1.5, 3}));
    });
}

}  // namespace
}  // namespace yoke::test
