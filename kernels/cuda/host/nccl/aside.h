// Call of NCCL in a separate thread. If NCCL does not return, the thread is left alone.
//
// Contract
//  * The caller and the thread both own the call. All data passed to NCCL lies in the call, so the caller may leave.
//  * The thread is a Calling, keeps the device open, and is in the device's context. The thread sets no error in the
//    core: the caller reports the thread's result.
//  * If the caller has left, the thread releases the call's results.
//  * A thread waits a moment for further calls, so frequent calls do not make a thread each.
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

    // Begins the call. Returns false if the device does not open or the system gives no thread.
    bool start();
    // Waits until the call is done and returns its result, or leaves the call. The call is left at the end of the
    // limit, if limit.is_over says so, or if `comm`, which may be null, is aborted. The result is kStuck if a
    // function of NCCL has not returned by then.
    Outcome wait(const Limit &limit, const Comm *comm = nullptr);
    // Returns, after wait, whether the thread goes on alone.
    bool is_left() const { return is_left_; }
    // Returns, after wait, the function of NCCL with the result, for messages.
    const char *function() const { return stuck_in_ ? stuck_in_ : function_.load(); }
    void drop();

protected:
    virtual ~Aside() = default;
    // Calls NCCL, in the thread.
    virtual Outcome run() = 0;
    // Releases the results of `run`, in the thread, if the caller has left before the end.
    virtual void take_back() {}
    // Calls a function of NCCL and returns its result. If the function does not return, the caller of wait() reports
    // its name.
    template <class F>
    ncclResult_t in(const char *function, const F &call)
    {
        function_ = function;
        const Inside inside(in_, function);
        return call();
    }
    // Notes a text for messages, about a wait of `run` outside NCCL.
    void note(const char *what) { function_ = what; }

private:
    static void *serve(void *first);
    void execute();
    Outcome run_in_device();
    Outcome leave(Ending ending, const Comm *comm);

    Device *const device_;
    const char *const entry_;
    std::atomic<const char *> in_{nullptr};        // function that has not returned
    std::atomic<const char *> function_{nullptr};  // last function that the thread called
    const char *stuck_in_ = nullptr;               // function in which the caller is stuck
    std::mutex lock_;
    std::condition_variable ended_;
    bool has_ended_ = false, is_left_ = false;
    Outcome outcome_{Ending::kAborted};
    std::atomic<int> owners_{2};
};

struct DropAside {
    void operator()(Aside *call) const { call->drop(); }
};

// Begins a call of type Call. Returns null if the call cannot begin.
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
