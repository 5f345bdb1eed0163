// call_queue.h: the one order of a group's calls.
//
// A blocking call runs in its caller's thread if no other call is queued or runs, and if no host can interrupt the
// wait. Every other call runs in the group's own thread, which is made at first need. Each call leaves a record, so
// that a dump tells what the group does.
#pragma once

#include "core/comm/late/flights.h"
#include "core/comm/pending_call.h"
#include "core/comm/record.h"
#include "core/rendezvous/members.h"

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace yoke {

class CallRunner;

// The queue, its thread and the records, all under one lock. No lock is held while a call runs.
class CallQueue {
public:
    // The group as the queue knows it.
    class Owner {
    public:
        // Ends a group that lingered, in the queue's own thread. The queue ends with the group, so the queue touches
        // none of its fields after this.
        virtual void end_lingering() noexcept = 0;

    protected:
        ~Owner() = default;
    };

    // `timeout_s`: the time that a call has, from its issue on.
    CallQueue(Owner &owner, CallRunner &runner, Flights &flights, const Members &members,
              double timeout_s);
    CallQueue(const CallQueue &) = delete;
    CallQueue &operator=(const CallQueue &) = delete;
    // Ends the thread when all calls are done; calls that a device has may go on. The owner calls it last, perhaps in
    // that very thread.
    void stop();
    // Makes the thread, without which no call can be late. Raises YOKE_E_OOM if the system gives none.
    void ensure_thread(const char *call);
    // Wakes the thread: calls on devices have landed.
    void wake() noexcept;

    // Takes the tensors of the calls, gives the calls their place in the order, and begins them. A call without a work
    // is done when this returns, if `may_run_here` and no other call is queued or runs. Else the result has a work for
    // the call: wait for the work.
    std::vector<Ref<Work>> issue(std::span<IssuedCall> issued, bool may_run_here);

    bool has_pending() const noexcept;  // calls that are queued or run
    // Whether calls on devices are not at their end.
    bool has_late_pending() const noexcept;
    // Lets a group that nobody holds live on until its calls are done: then the queue's thread calls end_lingering.
    // Returns false if no call is queued or runs, or the caller is the queue's thread.
    bool linger() noexcept;
    bool is_lingering() const noexcept;

    // Returns the number of the collective that this rank makes next.
    uint64_t next_number() const;
    std::vector<CallRecord> records() const;
    // Returns "all_reduce of 4 float32, sum at train.py:17" of the call that runs, or "".
    std::string describe_running() const;
    // Scope in which no call runs: its constructor waits for the call that runs.
    class Turn {
    public:
        explicit Turn(CallQueue &queue);
        ~Turn();
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

    private:
        CallQueue &queue_;
    };
    // Numbers that a dump tells of the queue.
    struct Counts {
        uint64_t calls = 0;
        std::vector<uint64_t> sent, received;  // by peer
    };
    // *now_s: when that was so.
    Counts counts(std::vector<CallRecord> *records, double *now_s) const;

private:
    using Batch = std::vector<PendingCall>;
    // The caller holds the lock for these four.
    yoke_comm_signature sign(const Collective &call);
    PendingCall number(IssuedCall &issued);
    void note_running(PendingCalls calls, double now);
    // Puts the calls in the queue. Returns false, and takes nothing, if the system gives no thread; *why says why.
    bool enqueue(PendingCalls calls, std::string *why);

    std::vector<Ref<Work>> start(PendingCalls calls, bool may_run_here,
                                 std::unique_lock<std::mutex> lock);
    std::exception_ptr perform(PendingCalls calls) noexcept;
    static void end(PendingCall &call, std::exception_ptr failure,
                    const std::shared_ptr<FailuresOfDevices> &failures) noexcept;
    std::exception_ptr end_late(PendingCall &call, std::exception_ptr failure) noexcept;
    void note_ended(PendingCalls calls, bool is_done) noexcept;
    bool is_next_ready() const noexcept;
    void take_landed() noexcept;
    bool start_thread_of_queue(std::string *why);
    void serve() noexcept;

    Owner &owner_;
    CallRunner &runner_;
    Flights &flights_;
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
    bool *is_gone_ = nullptr;  // tells serve that the queue has ended in serve's own thread
    Counts counts_;
    CallRecords records_;
};

}  // namespace yoke
