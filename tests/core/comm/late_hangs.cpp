// Library calls that do not return, and reports about them to other ranks and groups: core/comm/late.
#include "core/comm/late/comm_lane.h"
#include "tests/core/comm/late_backend.h"

namespace yoke::test {
namespace {

using Groups = std::vector<Ref<Group>>;

TEST(LateHangs, ARankWhoseLibraryDoesNotReturnIsNamedOnAllRanks)
{
    for (const int stuck : {0, 1})
        in_fresh_process_with_engine([stuck](Groups &groups) {
            const auto told = each_rank(groups, [stuck](Group &group) {
                const int64_t shape[] = {4};
                group.run(reduce_all(filled_on(device_of(group), 4, 1)), false);
                late_engine.stuck_rank = stuck;
                group.run(barrier(), false);
                (void)group.empty(shape, YOKE_F32, device_of(group));
            });
            const std::string rank = "rank " + std::to_string(stuck);
            expect_all_told(told, {"YOKE_E_TIMEOUT", "empty", rank.c_str()});
            EXPECT_EQ(told[0].find("rank " + std::to_string(1 - stuck)), std::string::npos);
        });
}

TEST(LateHangs, ACallBehindOneThatHangsEndsAtItsDeadlineWithTheNameOfThatOne)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            Device &device = device_of(*groups[0]);
            std::vector<Ref<Group>> others = init_devices({&device}, 0.3, kCall);
            for (const Ref<Group> &each : {groups[0], others[0]})
                each->run(reduce_all(filled_on(device, 4, 1)), false);
            late_engine.hangs = true;
            std::thread caller([&] {
                expect_error(YOKE_E_TIMEOUT, {"did not return"},
                             [&] { groups[0]->run(reduce_all(filled_on(device, 5, 1)), false); });
            });
            const Deadline deadline = Deadline::after(20);
            while (!CommLane::of(device)->user() && !deadline.has_passed())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            const auto behind = {"rank 0", "all_reduce of 5 float32", "of another group"};
            expect_error(YOKE_E_TIMEOUT, behind,
                         [&] { others[0]->run(reduce_all(filled_on(device, 4, 1)), false); });
            late_engine.hangs = false;
            caller.join();
        },
        0.3, 1);
}

TEST(LateHangs, ABarrierKeepsItsDeadlineWhileTheLibraryHoldsTheWatchThread)
{
    in_fresh_process_with_engine(
        [](Groups &groups) {
            fake_streams.reached = false;
            late_engine.holds_asking = true;
            const Ref<Work> work =
                groups[0]->run(reduce_all(filled_on(device_of(*groups[0]), 4, 1)), true);
            const Deadline deadline = Deadline::after(20);
            while (!late_engine.asking && !deadline.has_passed())
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            expect_error(YOKE_E_TIMEOUT, {"barrier", "rank 0", "earlier calls on the device"},
                         [&] { groups[0]->run(barrier(), false); });
            late_engine.holds_asking = false;
            fake_streams.reached = true;
        },
        0.3, 1);
}

}  // namespace
}  // namespace yoke::test
