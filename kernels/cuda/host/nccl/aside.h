// Call of NCCL in a thread of its own, which is left to itself where NCCL does not return.
//
// Contract
//  * The caller and the thread both own the call. What NCCL is given lies in the call, so that the caller may leave.
//  * The thread is a Calling, keeps the device open and is in its context. It sets no error of the host: the caller
//    tells what the thread has found.
//  * What comes of a call that the caller has left is taken back in the thread.
//  * A thread serves further calls for a moment, so that frequent calls do not make a thread each.
#pragma once

#include <condition_variable>
#include <memory>
#include <new>

#include "kernels/cuda/host/nccl/comm.h"

namespace yoke::cuda::nccl {

class Aside {
public:
    // `device` is null where NCCL needs none. `entry` names the engine's entry, for messages.
    Aside(Device *device, const char *entry) : device_(device), entry_(entry) {}
    Aside(const Aside &) = delete;
    Aside &operator=(const Aside &) = delete;

    // Begins the call. Returns false where the device does not open or the system gives no thread.
    bool start();
    // Waits until the call is done, or leaves it: at the end of the limit, or when `comm`, which may be null, is
    // aborted. The result is kStuck where a function of NCCL has not returned by then.
    Outcome wait(const Limit &limit, const Comm *comm = nullptr);
    // Return, after wait, whether the thread goes on by itself, and the function that the result is of.
    bool is_left() const { return is_left_; }
    const char *function() const { return stuck_in_ ? stuck_in_ : function_.load(); }
    void drop();

protected:
    virtual ~Aside() = default;
    // Calls NCCL, in the thread.
    virtual Outcome run() = 0;
    // Gives back what `run` has made, in the thread, where the caller has left before.
    virtual void take_back() {}
    // Calls a function of NCCL, whose name is told where it does not return.
    template <class F>
    ncclResult_t in(const char *function, const F &call)
    {
        function_ = function;
        const Inside inside(in_, function);
        return call();
    }
    // Notes what `run` waits for, in place of a function of NCCL.
    void note(const char *what) { function_ = what; }

private:
    static void *serve(void *first);
    void execute();
    Outcome run_in_device();
    Outcome leave(Ending ending, const Comm *comm);

    Device *const device_;
    const char *const entry_;
    std::atomic<const char *> in_{nullptr};        // the function that has not returned
    std::atomic<const char *> function_{nullptr};  // the last that the thread called
    const char *stuck_in_ = nullptr;               // the caller's
    std::mutex lock_;
    std::condition_variable ended_;
    bool has_ended_ = false, is_left_ = false;
    Outcome outcome_{Ending::kAborted};
    std::atomic<int> owners_{2};
};

struct DropAside {
    void operator()(Aside *call) const { call->drop(); }
};

// Begins a call of that kind. Returns null where it cannot begin.
template <class Call, class... Arguments>
std::unique_ptr<Call, DropAside> start_aside(Arguments &&...arguments)
{
    auto *call = new (std::nothrow) Call(arguments...);
    if (call && !call->start()) {
        call->drop();
        call->drop();
        call = nullptr;
    }
    return std::unique_ptr<Call, DropAside>(call);
}

}  // namespace yoke::cuda::nccl
