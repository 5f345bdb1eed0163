// What ends the start of a reducer: core/comm/reducer.cpp, reducer_start.cpp.
#include "core/base/interrupt.h"
#include "tests/core/comm/model.h"

namespace yoke::test {
namespace {

TEST(ReducerStart, WhoIsInterruptedEndsThatOfTheOthers)
{
    static std::atomic<bool> is_heard;
    is_heard = false;
    set_interrupt_hook([](void *) { return int32_t{is_heard = true}; }, nullptr, nullptr);
    std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
    const auto told = each_rank(groups, [](Group &group) {
        Model model({3});
        std::optional<Interruptible> waits;
        if (group.rank() == 1) waits.emplace("DistributedDataParallel");
        while (group.rank() == 0 && !is_heard) sleep_until(Deadline::after(0.01));
        model.join(Ref<Group>::share(&group));
    });
    set_interrupt_hook(nullptr, nullptr, nullptr);
    EXPECT_NE(told[1].find("YOKE_E_CANCELLED"), std::string::npos) << told[1];
    for (const char *part :
         {"YOKE_E_CANCELLED", "rank 1 (", "its DistributedDataParallel failed", "interrupted"})
        EXPECT_NE(told[0].find(part), std::string::npos) << part << " in " << told[0];
}

TEST(ReducerStart, UnlikeModelsLeaveTheGroupToOthers)
{
    on_ranks(3, [](const Ref<Group> &group) {
        expect_error(YOKE_E_VALUE, {"unlike modules", "'p1' is"}, [&] {
            Model({3, group->rank() == 2 ? 5 : 4}).join(group);
        });
        Model model({3});
        model.join(group);
        model.go_back({group->rank() + 1.});
        EXPECT_EQ(model.grads(), Values{2});
    });
}

}  // namespace
}  // namespace yoke::test
