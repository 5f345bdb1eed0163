// group.h: ranks that make the same calls in the same order.
//
// A group combines its parts: keys in the store (GroupKeys), departed ranks (Departures, PeerNews), the failure
// (Failure), the order of calls and their thread (CallQueue), calls on the engine (CallRunner), and operations beside
// collectives (MonitoredBarrier, Shrink, Split). All ranks raise the cause of the first failure on any rank. A rank
// can only leave a failed group, or shrink it.
//
// A call made by Python or Lua may run in the group's own thread, so a blocking call holds no lock of its caller.
// Order of locks: GroupLink, then Failure, then the locks of the store, of the engine and of Departures. CallQueue,
// MonitoredBarrier, Shrink and ReducerList call no other part of the group under their locks.
//
// Example: a call that fails. Ranks 0 and 1 call all_reduce, rank 0 with 4 elements, rank 1 with 5.
//  1. Group::run() has CallIssuer check the call. CallQueue gives the call the next number and a record, and runs it in
//     the caller's thread or in the group's thread.
//  2. CallRunner::run() gives the engine the call and its signature. The engines of both ranks compare the signatures,
//     find 4 and 5, and raise EngineFailure with the fault YOKE_COMM_FAULT_MISMATCH.
//  3. CallRunner::raise_fault() has Blame make the cause: status and text, with both calls, ranks and lines.
//  4. Failure::fail_alone() publishes the cause in the store. The first published cause stands for all ranks.
//  5. Failure::fail_with() ends waits in the store, gives the cause to the device's engine, aborts the engines, and has
//     the dump written.
//  6. Both calls raise the standing cause as CollectiveError. Each later call raises the cause from raise_if_failed().
//  7. Group::shrink() makes a new group of the living ranks.
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
    // Makes a group and connects this rank to the other ranks, until the deadline. All members call the function
    // alike. Raises a failure alike on all ranks.
    static Ref<Group> make(const Members &members, const GroupOptions &options, Deadline deadline,
                           const char *call);

    int32_t rank() const noexcept { return members_.rank; }
    int32_t size() const noexcept { return members_.size(); }
    int32_t local_rank() const noexcept { return members_.self().local_rank; }
    const std::vector<RankInfo> &ranks() const noexcept { return members_.ranks; }
    uint64_t number() const noexcept { return members_.number; }  // unique among groups
    std::string describe() const;
    // Returns whether this process made the group; false in a forked child.
    bool is_here() const noexcept { return issuer_.is_here(); }
    bool is_failed() const noexcept { return failure_.is_failed(); }

    // Checks a call and issues it, or keeps it in an open coalesce. Returns the work of an asynchronous call. An
    // issued blocking call returns null when the call is done, or when a device has the call ahead of the current
    // stream. Raises YOKE_E_VALUE and YOKE_E_TYPE for invalid arguments, published as by note_refused; else the
    // group's cause.
    Ref<Work> run(Collective call, bool is_async);
    CallIssuer &issuer() noexcept { return issuer_; }
    // Waits at most `seconds` for all ranks. Raises YOKE_E_TIMEOUT with the ranks missing then, or at once
    // YOKE_E_COMM with the dead ranks. The group does not fail. The next barrier is again for all ranks, whether or
    // not they came to this barrier.
    void monitored_barrier(double seconds);
    // Returns the group of the ranks with the same color, in the order of their keys, then of their ranks; null for a
    // negative color. All ranks call the function.
    Ref<Group> split(int32_t color, int64_t key);
    // Returns a new group of the ranks that call this within `seconds`, in the order of their ranks, even without
    // rank 0. This group ends for all ranks. Raises YOKE_E_COMM on a rank that comes after the others have gone on,
    // and YOKE_E_STATE after an earlier shrink.
    Ref<Group> shrink(double seconds);
    // Returns a tensor in memory that peers reach without a copy; all ranks call the function alike. If the host
    // engine serves a device, the tensor is an ordinary tensor of the device's allocator. Raises YOKE_E_OOM on all
    // ranks if memory is missing on a rank.
    Tensor empty(IntList shape, yoke_dtype dtype, Device &device);
    // Fails the group: all ranks raise YOKE_E_CANCELLED with this rank and `reason`. Does not wait for other ranks.
    void abort(const std::string &reason);  // raises YOKE_E_FORKED in a forked child
    // Returns this rank's issued calls on devices.
    const Flights &flights() const noexcept { return *flights_; }
    // Raises YOKE_E_FORKED in a forked child, and the cause of a failed group.
    void check_running(const char *call) { issuer_.check_running(call); }
    // Returns whether this rank knew of the failure when the node with this number was recorded. A rank knows if a
    // call raised the failure, or if the rank called abort.
    bool was_told_before(uint64_t sequence) const noexcept
    {
        return failure_.was_told_before(sequence);
    }
    // Publishes why this rank's next call was refused. Ranks that wait for the call in vain report the reason at
    // their deadline.
    void note_refused(const char *why, Refused what = Refused::kCollective) noexcept;
    // Runs a step before a call and returns its result. If the step raises an Error, publishes the refusal as
    // note_refused does, and raises the error.
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
    // Returns the records of the last calls, the newest last. Raises YOKE_E_FORKED in a forked child.
    std::vector<CallRecord> records() const;
    // Writes a dump (core/comm/dump.h) to the file `path`; on failure, an existing file stays as it was. May be
    // called while a call hangs, and for a failed group.
    void dump(const std::string &path) const;

    // Returns the reducers of gradients over the group (reducer.h). Raises YOKE_E_FORKED in a forked child.
    ReducerList &reducers();
    Backwards &backwards() noexcept { return backwards_; }

    // Ends this group's calls at the end of the process, for living_groups.h. If the script ended by an error, fails
    // the group, so its calls end and the other ranks learn the reason. Returns whether calls are queued or running.
    bool end_pending() noexcept;
    bool is_lingering() const noexcept { return calls_.is_lingering(); }
    void leave() noexcept;
    // Lets a released group live until its calls are done, unless the process ends by an error. Only the exit of a
    // host program shows how it ends, and it may have released its groups before.
    void let_linger() noexcept { may_linger_ = true; }

private:
    Group(const Members &members, const GroupOptions &options);
    ~Group() override;
    // Destroys the group, or lets it linger until its calls are done. Does nothing in a forked child: there, locks
    // and waiters are as in the parent's threads, which the child does not have.
    void destroy() noexcept override;
    void end_lingering() noexcept override;
    void note_landed() noexcept override { calls_.wake(); }
    void note_fault(LateCall &call, const EngineFailure &failure) noexcept override
    {
        issuer_.devices().note_fault(call, failure);
    }

    Tensor empty_on_host(IntList shape, yoke_dtype dtype);
    Tensor empty_on_device(IntList shape, yoke_dtype dtype, Device &device);
    // Runs a step shared by all ranks and returns its result. If an interrupt or missing memory ends the step here,
    // the other ranks cannot finish it. So the group fails, and the cause is raised.
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
