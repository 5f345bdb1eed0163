// Failures that end the start of a reducer: core/parallel/reducer.cpp, model_comparison.cpp.
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
        expect_error(YOKE_E_VALUE, {"different modules", "'p1' is"}, [&] {
            Model({3, group->rank() == 2 ? 5 : 4}).join(group);
        });
        Model model({3});
        model.join(group);
        model.go_back({group->rank() + 1.});
        EXPECT_EQ(model.grads(), Values{2});
    });
}

TEST(ReducerStart, UnlikeReduceDtypesAreRefusedBeforeTheFirstBackward)
{
    on_ranks(2, [](const Ref<Group> &group) {
        expect_error(
            YOKE_E_VALUE,
            {"'reduce_dtype' is not given on rank 0", "'reduce_dtype' is float32 on rank 1"}, [&] {
                Model model({3});
                ReducerOptions options;
                options.flags = group->rank() == 1 ? YOKE_COMM_IN_F32 : 0;
                model.reducer = Reducer::make(group, {{"p0", model.params[0]}}, {}, options);
            });
    });
}

// Returns whether all bytes beyond ASCII belong to whole copies of the character.
bool is_whole(std::string_view text, std::string_view character)
{
    for (size_t at = 0; at < text.size(); ++at) {
        if (!(text[at] & 0x80)) continue;
        if (text.substr(at, character.size()) != character) return false;
        at += character.size() - 1;
    }
    return true;
}

TEST(ReducerStart, ToldNamesAreCutAtWholeCharacters)
{
    for (const std::string begin : {"", "x"}) {
        std::string name = begin;
        for (int i = 0; i < 3000; ++i) name += "\u00e9";
        std::vector<Ref<Group>> groups = init_threads(2, 20, kCall);
        const auto told = each_rank(groups, [&](Group &group) {
            const Model model({group.rank() + 3});
            Reducer::make(Ref<Group>::share(&group), {{name, model.params[0]}}, {}, {});
        });
        EXPECT_EQ(told[0], told[1]);
        EXPECT_TRUE(is_whole(told[0], "\u00e9")) << told[0];
        for (const char *part : {"parameter '", "on rank 0, the parameter '", "on rank 1 ("})
            EXPECT_NE(told[0].find(part), std::string::npos) << part << " in " << told[0];
    }
}

}  // namespace
}  // namespace yoke::test
