#include "kernels/cuda/host/nccl/comm.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/library.h"

namespace yoke::cuda::nccl {

using namespace std::chrono_literals;

void release(Comm &comm)
{
    if (comm.owners.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    if (comm.device) close_device(comm.device);
    delete &comm;
}

void close_device(Device *device)
{
    const Calling calling;
    if (calling.is_allowed()) device_close(device);
}

// ---- the end of the process -----------------------------------------------------------------------------------------

namespace {

std::atomic<bool> g_ending{false};
std::atomic<int> g_calling{0};  // threads
std::atomic<double (*)()> g_time_left{nullptr};

void pause(Clock::duration time)
{
    usleep(static_cast<useconds_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(time).count()));
}

// Seconds: the default, if the time left is unknown; and the least time, if other steps used up the time.
constexpr double kAtMost = 5, kAtLeast = 0.1;

// Waits for calls of NCCL when the process ends. CUDA's own handlers run after this handler, and after them no call
// of NCCL works.
void end_calls(int, void *)
{
    if (is_forked() || g_ending.exchange(true)) return;
    double (*const time_left)() = g_time_left.load();
    const Limit limit = Limit::of(time_left ? std::max(time_left(), kAtLeast) : kAtMost);
    while (g_calling.load() && Clock::now() < limit.until) pause(1ms);
}

}  // namespace

bool may_call()
{
    return !is_forked() && !g_ending.load();
}

void share_exit(double (*time_left)())
{
    g_time_left.store(time_left);
}

void guard_exit(const Device &device, Making making)
{
    static std::atomic<uint64_t> guarded[2];  // a bit for each device
    static_assert(kMaxDevices <= 64);
    const uint64_t bit = uint64_t{1} << device.index;
    if (guarded[static_cast<int>(making)].fetch_or(bit) & bit) return;
    // Not atexit, which has no effect in this module: see exit_handlers.c.
    on_exit(end_calls, nullptr);
}

// Counts the thread first, then asks whether calls are allowed. So the end of the process sees the thread, or the
// thread sees the end.
Calling::Calling()
{
    g_calling.fetch_add(1);
    is_allowed_ = may_call();
}

Calling::~Calling()
{
    g_calling.fetch_sub(1);
}

// ---- turns ----------------------------------------------------------------------------------------------------------

Turn::Turn(Comm &comm, const Limit &limit) : comm_(comm)
{
    for (int question = 0; calling_.is_allowed() && may_call(); ++question) {
        if (comm.turn.mutex.try_lock()) ending_ = Ending::kDone;
        if (is_given() || (limit.heeds_abort && comm.aborted.load())) return;
        if (Clock::now() >= limit.until) {
            ending_ = comm.turn.in.load() ? Ending::kStuck : Ending::kLate;
            return;
        }
        pause(question < 100 ? 50us : 1000us);
    }
}

Turn::~Turn()
{
    if (is_given()) comm_.turn.mutex.unlock();
}

// ---- waiting --------------------------------------------------------------------------------------------------------

Limit Limit::of(double seconds)
{
    Limit limit;
    constexpr double kFar = 1e8;  // beyond which a time of the clock would overflow
    if (seconds >= 0 && seconds < kFar)
        limit.until = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                         std::chrono::duration<double>(seconds));
    return limit;
}

// Pauses before a question to NCCL. The first questions have no pause, because most calls are done in microseconds;
// the longest pause is a millisecond.
static void pause_before_question(int question)
{
    if (question < 8) return;
    pause(question < 32 ? 20us : question < 64 ? 100us : 1000us);
}

Outcome settle(Comm &comm, ncclResult_t said, const Limit &limit)
{
    for (int question = 0; said == ncclInProgress; ++question) {
        if (!may_call()) return {Ending::kAborted};
        if (limit.heeds_abort && comm.aborted.load()) return {Ending::kAborted};
        if (limit.is_over && limit.is_over(limit.user)) return {Ending::kOver};
        if (Clock::now() >= limit.until) return {Ending::kLate};
        pause_before_question(question);
        ncclResult_t state = ncclSuccess;
        const Inside inside(comm.turn.in, "ncclCommGetAsyncError");
        const ncclResult_t asked = find_calls()->ncclCommGetAsyncError(comm.handle, &state);
        said = asked == ncclSuccess ? state : asked;
    }
    if (said == ncclSuccess) return {Ending::kDone};
    return {Ending::kFailed, said};
}

}  // namespace yoke::cuda::nccl
