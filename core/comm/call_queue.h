// call_queue.h: the order of a group's calls.
//
// A blocking call runs in its caller's thread if no other call is queued or runs, and if no host program can
// interrupt the wait. Every other call runs in the group's own thread, which is made at first need. Each call leaves
// a record for dumps.
#pragma once

#include "core/comm/call_batches.h"
#include "core/comm/late/flights.h"
#include "core/comm/pending_call.h"
#include "core/comm/record.h"
#include "core/rendezvous/members.h"

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace yoke {

class CallRunner;

// The queue, its thread and the records, all under a single lock. No lock is held while a call runs.
class CallQueue {
public:
    // View of the group, for the queue.
    class Owner {
    public:
        // Ends a group that lingered, in the queue's own thread. The queue ends with the group, so the queue uses no
        // field after this call.
        virtual void end_lingering() noexcept = 0;

    protected:
        ~Owner() = default;
    };

    // Makes a queue without a thread. `timeout_s` is the time of a call from its issue on.
    CallQueue(Owner &owner, CallRunner &runner, Flights &flights, const Members &members,
              double timeout_s);
    CallQueue(const CallQueue &) = delete;
    CallQueue &operator=(const CallQueue &) = delete;
    // Ends the queue's thread after all queued calls, and waits for the thread; calls on a device may go on. In the
    // queue's own thread, runs the rest of the queue here. The owner calls this function last.
    void stop();
    // Makes the queue's thread, if there is none. Every deferred call needs the thread. Raises YOKE_E_OOM if the
    // system gives no thread.
    void ensure_thread(const char *call);
    // Wakes the queue's thread, because calls on devices have landed.
    void wake() noexcept;

    // Takes the tensors of the calls, gives the calls their place in the order, and begins them. A call without a
    // work is done after the return, if `may_run_here` and no other call is queued or runs. Else the result has a
    // work for the call, and the caller waits for the work.
    std::vector<Ref<Work>> issue(std::span<IssuedCall> issued, bool may_run_here);

    bool has_pending() const noexcept;  // queued or running calls
    // Returns whether a call on a device was issued and has not landed.
    bool has_late_pending() const noexcept { return flights_.are_issued(); }
    // Lets a released group live on until its calls are done; then the queue's thread calls end_lingering. Returns
    // false if no call is queued or runs, if there is no thread, or if the caller is the queue's thread.
    bool linger() noexcept;
    bool is_lingering() const noexcept;

    // Returns the number of this rank's next collective.
    uint64_t next_number() const;
    std::vector<CallRecord> records() const;
    // Returns "all_reduce of 4 float32, sum at train.py:17" for the running call, or "".
    std::string describe_running() const;
    // Scope without a running call. The constructor waits for the running call.
    class Turn {
    public:
        explicit Turn(CallQueue &queue);
        ~Turn();
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

    private:
        CallQueue &queue_;
    };
    // Numbers of the queue, for a dump.
    struct Counts {
        uint64_t calls = 0;
        std::vector<uint64_t> sent, received;  // by peer
    };
    // Returns the numbers. Sets *records to the last calls, and *now_s to the time of both.
    Counts counts(std::vector<CallRecord> *records, double *now_s) const;

private:
    using Batch = CallBatches::Batch;
    // Counts a call, and returns its signature. The caller holds the lock for this function and the next three.
    yoke_comm_signature sign(const Collective &call);
    PendingCall number(IssuedCall &issued);
    void note_running(PendingCalls calls, double now);
    // Puts the calls in the queue. Returns false and takes no call if the system gives no thread; *why is the reason.
    bool enqueue(PendingCalls calls, std::string *why);

    std::vector<Ref<Work>> start(PendingCalls calls, bool may_run_here,
                                 std::unique_lock<std::mutex> lock);
    std::exception_ptr perform(PendingCalls calls) noexcept;
    static void end(PendingCall &call, std::exception_ptr failure,
                    const std::shared_ptr<FailuresOfDevices> &failures) noexcept;
    std::exception_ptr end_late(PendingCall &call, std::exception_ptr failure) noexcept;
    void note_ended(PendingCalls calls, bool is_done) noexcept;
    bool are_held_up(PendingCalls calls) const noexcept;
    void await_work(std::unique_lock<std::mutex> &lock);
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
    CallBatches queue_;
    bool is_running_ = false;
    enum : uint8_t {
        kServes,
        kLeaves,
        kLingers
    } end_ = kServes;  // next action of the thread, when all calls are done
    struct {
        std::thread thread;
        bool *is_gone = nullptr;  // notifies `serve` of the queue's end in its own thread
        // Timed waits that are left before the thread sleeps until a wake. Meanwhile a deferred call needs no wake,
        // which would cost its caller more than the rest of the call.
        int looks = 0;
    } server_;
    Counts counts_;
    CallRecords records_;
};

}  // namespace yoke
