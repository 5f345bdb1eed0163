#include "kernels/cuda/host/nccl/aside.h"

#include <algorithm>
#include <utility>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/reaper.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

using namespace std::chrono_literals;

namespace {

// Time after the limit. The thread's own waits for other ranks end at the limit. So a call still running after the
// grace time is inside NCCL.
constexpr Clock::duration kGrace = 50ms;
constexpr Clock::duration kLook = 20ms;   // between two questions whether it is of use to wait
constexpr Clock::duration kIdle = 200ms;  // for which a thread waits for another call

// Threads that have ended a call and wait for the next.
class Workers {
public:
    // Gives the call to a waiting thread. Returns false if no thread waits.
    bool hand_over(Aside *call)
    {
        const std::lock_guard<std::mutex> lock(lock_);
        if (!idle_ || next_) return false;
        --idle_;
        next_ = call;
        called_.notify_one();
        return true;
    }
    // Waits for the thread's next call and returns it. Returns null if no call comes within kIdle.
    Aside *await_next()
    {
        std::unique_lock<std::mutex> lock(lock_);
        ++idle_;
        if (called_.wait_for(lock, kIdle, [this] { return next_ != nullptr; }))
            return std::exchange(next_, nullptr);
        --idle_;
        return nullptr;
    }

private:
    std::mutex lock_;
    std::condition_variable called_;
    Aside *next_ = nullptr;
    int idle_ = 0;
};
// Never destroyed: in a forked child the threads that wait in it are missing, and its end would wait for them.
Workers &g_workers = *new Workers;

}  // namespace

// Opens the device once more, because the caller may close it while NCCL's call goes on. Then gives the call to a
// waiting or a new thread. On failure closes the device and returns false. Takes no lock: the watch thread calls this,
// and must not wait for a thread that opens another device.
bool Aside::start()
{
    if (device_) keep_open(*device_);
    if (g_workers.hand_over(this) || start_detached(serve, this)) return true;
    if (device_) close_device(device_);
    return false;
}

void Aside::drop()
{
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
}

// ---- the thread -----------------------------------------------------------------------------------------------------

void *Aside::serve(void *first)
{
    for (auto *call = static_cast<Aside *>(first); call; call = g_workers.await_next())
        call->execute();
    return nullptr;
}

Outcome Aside::run_in_device()
{
    const Calling calling;
    if (!calling.is_allowed()) return {Ending::kAborted};
    if (!device_) return run();
    const RelaxedScope scope(device_, entry_);
    return scope.status() ? Outcome{Ending::kFailed, ncclUnhandledCudaError} : run();
}

void Aside::execute()
{
    const Outcome outcome = run_in_device();
    bool is_left = false;
    {
        const std::lock_guard<std::mutex> lock(lock_);
        has_ended_ = true;
        outcome_ = outcome;
        is_left = is_left_;
        ended_.notify_all();
    }
    if (is_left) take_back();
    if (device_) close_device(device_);
    drop();
}

// ---- the caller -----------------------------------------------------------------------------------------------------

// Marks the call as left by its caller, with the lock held, and returns the result of the wait. If the time is over
// and a function of NCCL has not returned, the result is kStuck.
Outcome Aside::leave(Ending ending, const Comm *comm)
{
    is_left_ = true;
    if (ending == Ending::kLate) stuck_in_ = in_.load();
    if (ending == Ending::kLate && !stuck_in_ && comm) stuck_in_ = comm->turn.in.load();
    return {stuck_in_ ? Ending::kStuck : ending};
}

Outcome Aside::wait(const Limit &limit, const Comm *comm)
{
    const Clock::time_point until =
        limit.until > Clock::time_point::max() - kGrace ? limit.until : limit.until + kGrace;
    std::unique_lock<std::mutex> lock(lock_);
    while (!has_ended_) {
        Ending ending = Ending::kDone;
        if (Clock::now() >= until) ending = Ending::kLate;
        if (comm && limit.heeds_abort && comm->aborted.load()) ending = Ending::kAborted;
        lock.unlock();  // is_over is the host program's
        if (limit.is_over && limit.is_over(limit.user)) ending = Ending::kOver;
        lock.lock();
        if (has_ended_) break;
        if (ending != Ending::kDone) return leave(ending, comm);
        ended_.wait_for(lock, std::min<Clock::duration>(kLook, until - Clock::now()));
    }
    return outcome_;
}

}  // namespace yoke::cuda::nccl
