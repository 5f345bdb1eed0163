// group.h: ranks that make the same calls in the same order.
//
// A group puts its parts together: keys in the store (GroupKeys), who has gone (Departures, PeerNews), why the group
// failed (Failure), the order of calls and their thread (CallQueue), calls on the engine (CallRunner), and what groups
// do beside collectives (MonitoredBarrier, Shrink, Split). All ranks raise the cause of whatever failed first on any
// rank. A rank can only leave a failed group, or shrink it.
//
// A call that Python or Lua makes may run in the group's own thread, so a blocking call holds no lock of its caller.
// Locks, in the order in which a thread may take them: GroupLink, then Failure, then those of the store, of the engine
// and of Departures. CallQueue, MonitoredBarrier, Shrink and ReducerList call nothing of the group under their locks.
#pragma once

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/comm/backwards.h"
#include "core/comm/call_issuer.h"
#include "core/comm/call_queue.h"
#include "core/comm/call_runner.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/comm/making.h"
#include "core/comm/monitored_barrier.h"
#include "core/comm/peer_news.h"
#include "core/comm/reducer_list.h"
#include "core/comm/shrink.h"
#include "core/comm/split.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace yoke {

class Group final : public RefCounted, private CallQueue::Owner, private Flights::Listener {
public:
    // All members call it alike. Raises what failed, alike on all ranks.
    static Ref<Group> make(const Members &members, const GroupOptions &options, Deadline deadline,
                           const char *call);

    int32_t rank() const noexcept { return members_.rank; }
    int32_t size() const noexcept { return members_.size(); }
    int32_t local_rank() const noexcept { return members_.self().local_rank; }
    const std::vector<RankInfo> &ranks() const noexcept { return members_.ranks; }
    uint64_t number() const noexcept { return members_.number; }  // no other group's
    std::string describe() const;
    // False in a forked child of the process that made it.
    bool is_here() const noexcept { return issuer_.is_here(); }
    bool is_failed() const noexcept { return failure_.is_failed(); }

    // Checks a call and runs it. What blocks has ended when it returns; null then. Raises YOKE_E_VALUE and _TYPE for
    // what does not fit, as note_refused has it; else the group's cause.
    Ref<Work> run(Collective call, bool is_async);
    CallIssuer &issuer() noexcept { return issuer_; }
    // Each rank lists the ranks that did not come within `seconds`, or at once, as YOKE_E_COMM, those that have died.
    // The group stays as it is, and the next one is that of all, whoever came to this one.
    void monitored_barrier(double seconds);
    // The ranks that gave the same color, in the order of their keys, then of their ranks; null for a negative color.
    // All ranks call it.
    Ref<Group> split(int32_t color, int64_t key);
    // The ranks that call it within `seconds`, in their order, even without rank 0; this group ends for all. Raises
    // YOKE_E_COMM in a rank that comes when the others have gone on, and YOKE_E_STATE where it has been called before.
    Ref<Group> shrink(double seconds);
    // In memory that peers reach without a copy; all ranks call it alike. If the host's engine serves the device, the
    // memory is the allocator's.
    Tensor empty(IntList shape, yoke_dtype dtype, Device &device);
    // All ranks get it as the cause. Returns at once.
    void abort(const std::string &reason);  // raises YOKE_E_FORKED in a forked child
    // Returns the calls that this rank has issued on devices.
    const Flights &flights() const noexcept { return *flights_; }
    // Raises what it has failed with.
    void check_running(const char *call) { issuer_.check_running(call); }
    // Whether this rank had been told that it has failed, by a call that raised it or as it called abort, when the node
    // of this number was recorded.
    bool was_told_before(uint64_t sequence) const noexcept
    {
        return failure_.was_told_before(sequence);
    }
    // Of what this rank was to call next: who waits for it in vain is told at its deadline.
    void note_refused(const char *why, Refused what = Refused::kCollective) noexcept;
    // A step before a call is one of the group's, which notes what that refuses.
    template <class Step>
    auto or_refuse(Step &&step, Refused what = Refused::kCollective)
    {
        try {
            return step();
        } catch (const Error &error) {
            note_refused(error.what(), what);
            throw;
        }
    }
    // Of the last calls, the newest last.
    std::vector<CallRecord> records() const;
    // What core/comm/dump.h tells, in a file that is whole or as it was. Also while a call hangs, and of a failed
    // group.
    void dump(const std::string &path) const;

    // Returns the reducers of gradients over the group (reducer.h). Raises YOKE_E_FORKED in a forked child.
    ReducerList &reducers();
    Backwards &backwards() noexcept { return backwards_; }

    // For living_groups.h, at the end of the process. If the script ended by an error, fails the group, so that its
    // calls end and the others learn why. Returns whether calls are queued or running.
    bool end_pending() noexcept;
    bool is_lingering() const noexcept { return calls_.is_lingering(); }
    void leave() noexcept;
    // Lets the group live until its calls are done, though nobody holds it, unless the process ends by an error: how a
    // host ends that has just let go of its parts is known at its exit alone.
    void let_linger() noexcept { may_linger_ = true; }

private:
    Group(const Members &members, const GroupOptions &options);
    ~Group() override;
    // A forked child's stays: locks and those who wait are as they were in threads that it does not have.
    void destroy() noexcept override;
    void end_lingering() noexcept override;
    void note_landed() noexcept override { calls_.wake(); }
    void note_fault(LateCall &call, const EngineFailure &failure) noexcept override
    {
        issuer_.devices().note_fault(call, failure);
    }

    Tensor empty_on_host(IntList shape, yoke_dtype dtype);
    Tensor empty_on_device(IntList shape, yoke_dtype dtype, Device &device);
    // Takes a step that all ranks take together. If an interrupt or a want of memory ends the step here, the other
    // ranks cannot finish it: so the group fails.
    template <class Step>
    auto or_fail(const char *call, Step &&step)
    {
        try {
            return step();
        } catch (const Interrupted &) {
            failure_.fail_alone(call, cause_of(std::current_exception(), members_.self(), call));
        } catch (const std::bad_alloc &) {
            failure_.fail_alone(call, cause_of(std::current_exception(), members_.self(), call));
        }
    }
    Dump look(const Cause *failing) const;
    void say_left() noexcept;

    const Members members_;
    const GroupOptions options_;
    GroupKeys keys_;
    Departures departures_;
    Failure failure_;
    CallRunner runner_;
    const std::shared_ptr<Flights> flights_;
    CallQueue calls_;
    CallIssuer issuer_;
    PeerNews news_;
    StoreCall store_call_;
    MonitoredBarrier barrier_;
    Shrink shrink_;
    Split split_;
    ReducerList reducers_;
    Backwards backwards_;
    std::atomic<bool> may_linger_{false}, has_said_left_{false};
};

}  // namespace yoke
