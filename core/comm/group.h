// group.h: ranks that make the same calls in the same order.
//
// A group has one order. On the host a call that blocks runs in its caller if nothing is queued; else, and where it is
// asynchronous, in the group's own thread, made at first need. Tensors of a device are staged (staging.h). What fails
// first on any rank is the cause that all ranks raise, from that call and from each later one; what a rank then does
// with the group is to leave it.
#pragma once

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/work.h"
#include "core/comm/backwards.h"
#include "core/comm/cause_of.h"
#include "core/comm/collective.h"
#include "core/comm/dump_failure.h"
#include "core/comm/engine.h"
#include "core/comm/in_use.h"
#include "core/rendezvous/members.h"
#include "core/rendezvous/shrink_rendezvous.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <future>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <thread>

namespace yoke {

struct GroupOptions {
    std::string engine = "cpu";
    double timeout_s = 600;       // of a call, the time in the queue counted in
    double init_timeout_s = 300;  // until all ranks are there
};

class Reducer;

class Group final : public RefCounted, public PeerListener {
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
    bool is_here() const noexcept { return process_ == getpid(); }
    bool is_failed() const noexcept;

    // Checks a call and runs it. What blocks has ended when it returns; null then. Raises YOKE_E_VALUE and _TYPE for
    // what does not fit, as note_refused has it; else the group's cause.
    Ref<Work> run(Collective call, bool is_async);
    // A call that was checked, and the work that tells of it; null where its caller waits.
    struct Issued {
        Collective call;
        Ref<Work> work;
        const ScriptLine *line = nullptr;
    };
    // Calls that no send or receive among them keeps from going on, begun when it returns. Those without a work are
    // done then where `may_run_here`, or have one among the results, to be waited for.
    std::vector<Ref<Work>> run_together(std::vector<Issued> calls, bool may_run_here);
    // Each of them lists the ranks that did not come within `seconds`, or at once, as YOKE_E_COMM, those that have
    // died. The group stays as it is, and the next one is that of all, whoever came to this one.
    void monitored_barrier(double seconds);
    // The ranks that gave the same color, in the order of their keys, then of their ranks; null for a negative color.
    // All ranks call it.
    Ref<Group> split(int32_t color, int64_t key);
    // The ranks that call it within `seconds`, in their order, even without rank 0; this group ends for all. Raises
    // YOKE_E_COMM in a rank that comes when the others have gone on, and YOKE_E_STATE where it has been called before.
    Ref<Group> shrink(double seconds);
    // In memory that peers reach without a copy; all ranks call it alike.
    Tensor empty(IntList shape, yoke_dtype dtype);
    // All ranks get it as the cause. Returns at once.
    void abort(const std::string &reason);  // raises YOKE_E_FORKED in a forked child
    // Raises what it has failed with.
    void check_running(const char *call);
    // Whether this rank had been told that it has failed, by a call that raised it or as it called abort, when the node
    // of this number was recorded.
    bool was_told_before(uint64_t sequence) const noexcept
    {
        const uint64_t told = told_at_;
        return told != UINT64_MAX && sequence >= told;
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

    // Who reduces gradients over it (reducer.h), and those that still live.
    int64_t add_reducer(std::weak_ptr<Reducer> reducer);  // its number, from 1 on
    std::vector<std::shared_ptr<Reducer>> reducers() const;
    Backwards &backwards() noexcept { return backwards_; }

    void hear(const PeerEvent &event) noexcept override;

private:
    // A call that was issued, and its tensors, as the engine takes them.
    struct Pending {
        Collective call;
        yoke_comm_signature signature{};
        const ScriptLine *line = nullptr;
        Deadline deadline = Deadline::after(0);
        uint64_t record = 0;  // its number among the records
        Ref<Work> work = {};  // null: it blocks its caller
        InUse in_use = {};    // the call's tensors, since it was issued
        Tensor in = {}, out = {};

        CurrentCall current() const
        {
            return {signature, yoke::describe(line), call.op == YOKE_COMM_RECV ? call.peer : -1};
        }
    };
    // Calls that are issued together, mostly one; those in the queue are its own.
    using Batch = std::vector<Pending>;
    using Calls = std::span<Pending>;

    Group(Members members, const GroupOptions &options);
    ~Group() override;
    // A forked child's stays: locks and those who wait are as they were in threads that it does not have.
    void destroy() noexcept override
    {
        if (is_here() && !lingers()) delete this;
    }
    // A part that nobody holds any more lives until what was begun is done, or the process ends by an error: how a host
    // ends that has just let go of its parts is known at its exit alone.
    bool lingers() noexcept;
    void end_lingering() noexcept;

    // In its scope the calling thread meets the other ranks in the store.
    class StoreCall {
    public:
        StoreCall(Group &group, const char *call);
        ~StoreCall();
        StoreCall(const StoreCall &) = delete;
        StoreCall &operator=(const StoreCall &) = delete;

    private:
        Group &group_;
    };

    // These two raise YOKE_E_FORKED in a forked child.
    void check_process() const;
    std::unique_lock<std::mutex> lock_here() const;
    // With the lock held, which they let go of where they raise.
    void check_usable(std::unique_lock<std::mutex> &lock, const char *call);
    [[noreturn]] void raise_cause(std::unique_lock<std::mutex> &lock, const char *call);
    void name_cause(const char *call);
    void note_told() noexcept;
    void forget_refused(Refused what) noexcept;
    // With the lock held.
    yoke_comm_signature sign(const Collective &call);
    Pending number(Issued issued);
    void issue(Issued issued, bool may_run_here);
    // What each rank gave to this call of the core's own, in their order.
    std::vector<int64_t> exchange(int32_t called_as, std::vector<int64_t> mine);
    std::vector<Ref<Work>> start(Calls calls, bool may_run_here, std::unique_lock<std::mutex> lock);
    void note_running(Calls calls, double now);
    // What it failed with, or null; works are told of it.
    std::exception_ptr perform(Calls calls) noexcept;
    void execute(Calls calls);
    void note_ended(Calls calls, bool is_done) noexcept;
    const void *order_of(const Collective &call) const noexcept;
    void *allocate(uint64_t bytes);
    void begin(Pending &pending);
    void end(Pending &pending);
    // Of tensors of a device.
    void stage(Collective &call);
    void begin_staged(Pending &pending);
    void end_staged(Pending &pending);
    yoke_collective record_of(const Pending &pending);
    void call_engine(Calls calls);
    void serve() noexcept;
    // Takes them. False, and nothing taken, where the system gives no thread for it.
    bool enqueue(Calls calls);
    void listen();
    // How often the ranks gathered for it.
    int open_engine(Deadline deadline, const char *call);
    static Ref<Group> begin_making(const Members &members, const GroupOptions &options,
                                   const char *call);
    [[noreturn]] void fail_making(const EngineFailure &failure, const char *call);
    using Gather = std::function<std::vector<std::string>(const std::string &mine)>;
    std::string agree_on_engine(const yoke_backend_comm &table, const Gather &gather_next,
                                const char *call) const;
    void connect_engine(const yoke_backend_comm &table, const EngineInit &init);
    void check_one_engine(const std::vector<std::string> &told, const char *call) const;
    Cause cause_of_interrupt(const char *call) const;
    Cause cause_of_shortage(const char *call) const;
    // Where there is no group yet that would tell the others.
    [[noreturn]] static void fail_early(Store &store, const Cause &cause);
    Members part_of(int32_t color, const std::vector<int64_t> &given,
                    const std::string &name) const;
    void forget_making(int gathered) noexcept;
    // What each rank gives under this name. Raises YOKE_E_TIMEOUT with those that give nothing.
    std::vector<std::string> gather(Store &store, const std::string &name, const std::string &mine,
                                    Deadline deadline, const char *call) const;
    std::string describe_server() const;
    bool is_made() const noexcept;  // the engine is there
    bool is_half_made() const noexcept;
    // A failure that no call has found. All ranks get it that can be reached without waiting.
    void lose(const RankInfo &peer, const Cause &cause) noexcept;
    bool can_offer(const RankInfo &lost, const Cause &cause) noexcept;
    void miss_server(const RankInfo &peer) noexcept;
    void dump_loss(const RankInfo &peer) noexcept;
    void note_outsider(const PeerEvent &event) noexcept;
    // Raises what it has failed with where the table has gone with the rank that kept it; YOKE_E_COMM, and has not
    // failed, where that is none of this group's.
    void check_table(const char *call);
    Cause cause_of_failed_making(const char *call);
    void check_not_shrunk() const;
    void end_by_shrink(double seconds) noexcept;
    Members reunite(Deadline deadline);
    Ref<Group> make_of(const Members &living, Deadline deadline) const;
    bool have_all_come(uint64_t barrier) const noexcept;
    void await_cause(const char *call);
    // A view of the table for one wait of a barrier's.
    struct BarrierWait {
        std::shared_ptr<Store> keys;
        size_t dead = 0;  // ranks that had died when it began
    };
    BarrierWait open_barrier();
    Ref<Group> make_part(const Members &part);
    uint64_t next_barrier();
    uint64_t barrier_behind(uint64_t number);
    std::vector<int32_t> end_of_barrier(uint64_t number, Deadline deadline);
    std::optional<std::vector<int32_t>> await_barrier(uint64_t number, bool &has_come,
                                                      Deadline deadline);
    void come_to_barrier(uint64_t number, Deadline deadline);
    std::vector<int32_t> give_up_barrier(uint64_t number, Deadline deadline) const;
    std::vector<int32_t> missing_at(uint64_t barrier, Store &keys) const;
    [[noreturn]] void fail_missing(const std::vector<int32_t> &missing, Deadline deadline) const;
    // Of who has not come in time, for people.
    [[noreturn]] void fail_late(const char *call, const std::string &missing,
                                Deadline deadline) const;
    std::string describe_dead(uint64_t barrier, Store &keys) const;
    size_t count_dead() const;  // with the lock held
    bool has_lost_more(size_t dead) const;
    // What this rank leaves amid it the others cannot end: the group fails.
    template <class Step>
    auto or_fail(const char *call, Step &&step)
    {
        try {
            return step();
        } catch (const Interrupted &) {
            fail_alone(call, cause_of_interrupt(call));
        } catch (const std::bad_alloc &) {
            fail_alone(call, cause_of_shortage(call));
        }
    }
    void forget_barriers(uint64_t before) noexcept;
    void fail_with(const Cause &cause) noexcept override;  // nothing where it has failed already
    std::string describe_running() const;
    Dump look(const Cause *failing) const;
    FailureDump dump_of(const Cause &cause) const noexcept;
    Cause agreed(Cause mine, double patience_s = 1) noexcept;
    int32_t server() const noexcept;
    // Of a deadline; the rank that is missed for certain, or -1.
    std::map<int32_t, Missing> who_misses_whom(double patience_s) const;
    Suspects find_suspects(int32_t missed, const CurrentCall &current) const;
    std::string refusal_of(int32_t rank, const CurrentCall &current) const;
    std::string refusal_of(int32_t rank, Refused what, uint64_t number, Deadline deadline) const;
    // Of each of them; and, for people, with why it has not come as far as it told.
    std::vector<std::string> refusals_of(const std::vector<int32_t> &ranks, Refused what) const;
    std::string describe_absent(const std::vector<int32_t> &ranks) const;
    void warn_of_absent(const std::vector<int32_t> &present) const;
    Cause cause_of_lateness(int32_t missed, const CurrentCall &current, bool *can_agree) const;
    // *can_agree becomes false where the table by which ranks agree is out of reach.
    Cause cause_of_call(const EngineFailure &failure, const CurrentCall &current,
                        bool *can_agree) const;
    void keep_memory(Calls calls) const;
    static CurrentCall current_call_of(const yoke_comm_fault &fault, Calls calls);
    static const Pending &met_by(const yoke_comm_fault &fault, Calls calls) noexcept;
    [[noreturn]] void fail_call(const EngineFailure &failure, Calls calls);
    // What happened to this rank alone, where the others wait.
    [[noreturn]] void fail_alone(const char *call, const Cause &cause);
    [[noreturn]] void fail_alone(yoke_status status, const char *text, const Pending &pending);
    bool has_pending() const noexcept;  // calls that were begun
    bool is_lingering() const noexcept;
    void fail_as_ended() noexcept;
    // A farewell, which tells the others that this rank has not died.
    void say_left() noexcept;
    friend void leave_living_group(const std::weak_ptr<GroupLink> &link, Deadline deadline);
    void leave_for_good() noexcept;
    // Why, as far as it told; nothing where it has not left.
    std::optional<std::string> why_it_left(const yoke_comm_fault &fault) const noexcept;
    std::optional<bool> has_gone(int32_t rank) const noexcept;
    // As yoke_collective has it.
    int32_t find_gone(std::span<const int32_t> ranks, bool has_died) const noexcept;

    const Members members_;
    const GroupOptions options_;
    const pid_t process_;
    Staging staging_;
    std::shared_ptr<Engine> engine_;  // lives on with the memory that it lent

    // The rest with mutex_ held.
    mutable std::mutex mutex_;
    mutable std::condition_variable changed_;
    std::deque<Batch> queue_;
    bool is_running_ = false, is_leaving_ = false, is_lingering_ = false;
    std::thread thread_;
    bool *is_gone_ = nullptr;  // to be set where the group's own thread ends it
    bool may_linger_ = false;
    std::optional<Cause> cause_;
    double failed_s_ = 0;              // when it was told
    std::shared_future<void> dumped_;  // once the dump that YOKE_COMM_DUMP asks for is written
    uint64_t sequence_ = 0;
    std::vector<uint64_t> sent_, received_;  // by peer
    CallRecords records_;
    struct {
        const char *call = nullptr;
        double since_s = 0;
        const ScriptLine *line = nullptr;
    } store_call_;  // the last one that was begun
    uint64_t splits_ = 0, barriers_ = 0;
    uint64_t kept_barrier_ = 1;  // the first whose key of this rank is still in the store
    std::vector<std::weak_ptr<Store>> barriers_under_way_;  // keys of monitored ones
    std::vector<std::weak_ptr<Store>> parts_under_way_;     // of those that are made
    std::map<int32_t, bool>
        has_left_;  // of processes that have gone, and of server(): with a farewell
    int shrinks_ = 0;
    bool is_shrunk_ = false, has_left_shrink_ = false;
    ShrinkPorts ports_;  // of processes
    std::vector<std::weak_ptr<Reducer>> reducers_;
    int64_t made_reducers_ = 0;
    Backwards backwards_;
    std::array<std::atomic<bool>, std::size(kRefusedKeys)> has_refused_{};
    std::atomic<uint64_t> told_at_{UINT64_MAX};
    std::shared_ptr<GroupLink> link_;
    std::atomic<bool> has_said_left_{false};
    uint64_t heard_by_ = 0;  // the number by which the store tells of a cause
};

// Of those that still live as the process ends: what was begun ends first, of those that something holds within some
// seconds.
void leave_living_groups() noexcept;
void leave_living_group(const std::weak_ptr<GroupLink> &link, Deadline deadline);
// Makes a group known to leave_living_groups.
void note_living(const std::shared_ptr<GroupLink> &link);

}  // namespace yoke
