// Ranks that are threads find each other again: core/rendezvous/shrink_threads.cpp.
#include "core/base/interrupt.h"
#include "core/store/store_hash.h"
#include "tests/core/comm/threads.h"

namespace yoke::test {
namespace {

// Fixture of a group whose ranks share a store.
class ShrinkThreads : public ::testing::Test {
protected:
    Members rank(int32_t own, int32_t size = 2) const
    {
        Members members;
        members.rank = own;
        members.store = store_;
        for (int32_t each = 0; each < size; ++each) {
            members.ranks.emplace_back();
            members.ranks.back().rank = each;
            members.met_as.push_back(each);
        }
        return members;
    }

    const std::shared_ptr<HashStore> store_ = std::make_shared<HashStore>();
};

constexpr const char *kTooLate = "called shrink too late: the other ranks went on without it";

TEST_F(ShrinkThreads, NoTryMakesAnotherGroupWhereOthersHaveGoneOn)
{
    const Members zero = rank(0), one = rank(1);
    const Members first = reunite_threads(zero, 1, Deadline::after(0));
    const Members second = reunite_threads(one, 2, Deadline::after(0));
    EXPECT_EQ(first.met_as, std::vector<int32_t>{0});
    EXPECT_EQ(second.met_as, std::vector<int32_t>{1});
    go_on_as_threads(zero, first);
    EXPECT_EQ(reunite_threads(zero, 2, Deadline::after(20)).number, first.number);
    expect_error(YOKE_E_COMM, {"rank 1", kTooLate}, [&] { go_on_as_threads(one, second); });
    for (const int attempt : {3, 4})
        expect_error(YOKE_E_COMM, {"rank 1", kTooLate},
                     [&] { (void)reunite_threads(one, attempt, Deadline::after(20)); });
}

TEST_F(ShrinkThreads, AGroupWhoseMakingFailedKeepsNobodyFromAnother)
{
    EXPECT_EQ(reunite_threads(rank(0), 1, Deadline::after(0)).size(), 1);
    auto other = std::async(std::launch::async,
                            [&] { return reunite_threads(rank(1), 2, Deadline::after(20)); });
    EXPECT_EQ(reunite_threads(rank(0), 2, Deadline::after(20)).size(), 2);
    EXPECT_EQ(other.get().size(), 2);
}

// Rank 2 does not come, so rank 0 waits until its time is over. Rank 1 has time left.
TEST_F(ShrinkThreads, WhoHasComeGoesOnAsSoonAsAnotherSaysWhoIsThere)
{
    auto other = std::async(std::launch::async,
                            [&] { return reunite_threads(rank(1, 3), 1, Deadline::after(20)); });
    store_->wait({"shrink/1/here/1"}, Deadline::after(20));
    const Deadline soon = Deadline::after(10);
    const Members made = reunite_threads(rank(0, 3), 1, Deadline::after(0));
    EXPECT_EQ(made.met_as, (std::vector<int32_t>{0, 1}));
    EXPECT_EQ(other.get().number, made.number);
    EXPECT_FALSE(soon.has_passed());
}

TEST_F(ShrinkThreads, WhoIsInterruptedIsNoLongerThere)
{
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    set_interrupt_hook([](void *) { return int32_t{1}; }, nullptr, nullptr);
    {
        const Interruptible waits("shrink");
        expect_error(YOKE_E_CANCELLED, {"shrink", "interrupted"},
                     [&] { (void)groups[0]->shrink(20); });
    }
    set_interrupt_hook(nullptr, nullptr, nullptr);
    EXPECT_EQ(groups[1]->shrink(1)->size(), 1);
}

TEST_F(ShrinkThreads, WhoIsInterruptedAsAnotherCountsItTellsSo)
{
    store_->set("shrink/1/here/1", "", Deadline::after(0));
    const Members made = reunite_threads(rank(0), 1, Deadline::after(20));
    leave_threads(rank(1), 1, {YOKE_E_CANCELLED, "it was interrupted"});
    expect_error(YOKE_E_CANCELLED, {"it was interrupted"},
                 [&] { (void)Group::make(made, {}, Deadline::after(20), kCall); });
}

TEST_F(ShrinkThreads, WhoComesTooLateDoesSoHoweverOftenItTries)
{
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    const Ref<Group> smaller = groups[0]->shrink(1);
    EXPECT_EQ(smaller->size(), 1);
    for (int i = 0; i < 3; ++i)
        expect_error(YOKE_E_COMM, {"shrink", "rank 1", kTooLate},
                     [&] { (void)groups[1]->shrink(1); });
}

}  // namespace
}  // namespace yoke::test
