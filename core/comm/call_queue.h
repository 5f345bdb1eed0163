// call_queue.h: the one order of a group's calls.
//
// On the host a call that blocks runs in its caller if nothing is queued; else, and where it is asynchronous, in the
// group's own thread, made at first need. A call leaves a record, by which a dump tells what the group does.
#pragma once

#include "core/base/deadline.h"
#include "core/base/work.h"
#include "core/comm/cause_of.h"
#include "core/comm/collective.h"
#include "core/comm/in_use.h"
#include "core/comm/record.h"
#include "core/rendezvous/members.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

namespace yoke {

// A call that was checked, and the work that tells of it; null where its caller waits.
struct IssuedCall {
    Collective call;
    Ref<Work> work;
    const ScriptLine *line = nullptr;
};

// A call with its place in the order, and its tensors as the engine takes them.
struct PendingCall {
    Collective call;
    yoke_comm_signature signature{};
    const ScriptLine *line = nullptr;
    Deadline deadline = Deadline::after(0);
    uint64_t record = 0;  // its number among the records
    Ref<Work> work = {};  // null: it blocks its caller
    InUse in_use = {};    // the call's tensors, since it was issued
    const void *order =
        nullptr;  // of InUse; null of tensors of a device, which are read before calls ahead write
    Tensor in = {}, out = {};

    CurrentCall current() const
    {
        return {signature, describe(line), call.op == YOKE_COMM_RECV ? call.peer : -1};
    }
};
// Calls that are issued together, mostly one.
using PendingCalls = std::span<PendingCall>;

class CallRunner;

class CallQueue {
public:
    // The group.
    class Owner {
    public:
        // Ends a group that lingered, in the queue's own thread. The queue ends with the group.
        virtual void end_lingering() noexcept = 0;

    protected:
        ~Owner() = default;
    };

    // `timeout_s`: of a call, the time in the queue counted in.
    CallQueue(Owner &owner, CallRunner &runner, const Members &members, double timeout_s);
    CallQueue(const CallQueue &) = delete;
    CallQueue &operator=(const CallQueue &) = delete;
    // Ends the thread, when all that was begun is done. The last call of the owner, which may be in that thread.
    void stop();

    // Gives the calls their place in the order, and begins them. Calls without a work are done when this returns, where
    // the caller may run them and nothing else is under way; else each has a work among the results, to be waited for.
    std::vector<Ref<Work>> issue(IssuedCall issued, bool may_run_here);
    std::vector<Ref<Work>> issue(std::vector<IssuedCall> issued, bool may_run_here);

    bool has_pending() const noexcept;  // calls that were begun
    // Lets a group that nobody holds live on until what was begun is done: false where nothing is under way, or this is
    // the queue's thread. Then the thread calls the owner's end_lingering.
    bool linger() noexcept;
    bool is_lingering() const noexcept;

    // Returns the number of the collective that this rank makes next.
    uint64_t next_number() const;
    std::vector<CallRecord> records() const;
    // Returns "all_reduce of 4 float32, sum at train.py:17" of the call that runs, or "".
    std::string describe_running() const;
    // In its scope no call runs.
    class Turn {
    public:
        explicit Turn(CallQueue &queue);
        ~Turn();
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

    private:
        CallQueue &queue_;
    };
    // In its scope the calling thread agrees with the other ranks in the store.
    class StoreCall {
    public:
        StoreCall(CallQueue &queue, const char *call);
        ~StoreCall();
        StoreCall(const StoreCall &) = delete;
        StoreCall &operator=(const StoreCall &) = delete;

    private:
        CallQueue &queue_;
    };
    // What a dump tells of the queue.
    struct Counts {
        uint64_t calls = 0;
        std::vector<uint64_t> sent, received;  // by peer
        const char *store_call = nullptr;      // the one that is under way
        double since_s = 0;                    // when it began
        const ScriptLine *line = nullptr;      // of the script that made it
    };
    // *now_s: when that was so.
    Counts counts(std::vector<CallRecord> *records, double *now_s) const;

private:
    using Batch = std::vector<PendingCall>;
    // These four with the lock held.
    yoke_comm_signature sign(const Collective &call);
    PendingCall number(IssuedCall issued);
    void note_running(PendingCalls calls, double now);
    // Takes them. False, and nothing taken, where the system gives no thread for it; *why says why.
    bool enqueue(PendingCalls calls, std::string *why);

    std::vector<Ref<Work>> start(PendingCalls calls, bool may_run_here,
                                 std::unique_lock<std::mutex> lock);
    std::exception_ptr perform(PendingCalls calls) noexcept;
    void note_ended(PendingCalls calls, bool is_done) noexcept;
    void serve() noexcept;

    Owner &owner_;
    CallRunner &runner_;
    const Members &members_;
    const double timeout_s_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Batch> queue_;
    bool is_running_ = false;
    enum : uint8_t {
        kServes,
        kLeaves,
        kLingers
    } end_ = kServes;  // what the thread does once all is done
    std::thread thread_;
    bool *is_gone_ = nullptr;  // to be set where the queue's own thread ends it
    Counts counts_;
    CallRecords records_;
};

}  // namespace yoke
