// Communicator of the engine "nccl", and how calls of NCCL on it follow one another.
//
// Contract
//  * Communicators are non-blocking. Each call of NCCL on one is made in a Turn, which lasts until NCCL has no longer
//    the call in progress: NCCL allows one call at a time, and none amid another.
//  * Whoever waits in a Turn leaves it when the communicator is aborted, when time is over, and when the process ends.
//    A caller of a collective cannot be freed from a call of NCCL that does not return; other calls are made aside
//    (aside.h).
//  * `abort` and `destroy` of the engine's table hand the communicator to a thread (reaper.h) and do not wait.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "core/backend/comm.h"
#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/nccl/abi.h"

namespace yoke::cuda::nccl {

using Clock = std::chrono::steady_clock;

// Memory that was given back and is freed in a thread, one thread at a time (memory.h).
struct Freeing {
    std::atomic<bool> has_marked{false};  // given back amid a call
    std::atomic<int> asked{0};  // how often, since a thread began with it; 0: none is at it
};

// Lock of the right to call NCCL on a communicator.
struct TurnLock {
    std::mutex mutex;
    std::atomic<const char *> in{nullptr};  // the function of NCCL in which the owner is
};

// Work of the latest call.
struct LastWork {
    std::atomic<cudaStream_t> stream{nullptr};
    std::atomic<bool> has_called{false};
    cudaEvent_t event = nullptr;  // behind it, once there will be no other
};

struct Comm {
    Device *device =
        nullptr;  // opened once more, for NCCL is at work there after the core has closed it
    int rank = 0, size = 1;
    double patience_s = -1;       // of calls that bring no time of their own; below 0: none
    ncclComm_t handle = nullptr;  // of NCCL, under `turn`; null once it has gone
    TurnLock turn;
    std::atomic<bool> aborted{false};
    std::atomic<bool> has_failed{false};
    std::atomic<bool> is_in_reaper{false};
    std::atomic<bool> has_windows{false};  // of memory that peers reach: NCCL has given one
    Freeing freeing;
    LastWork last;
    std::atomic<int> let_go{0};  // how many have: of NCCL and the core
    Comm *next_left = nullptr;   // of those that were left behind
    // The handle that the core has, the thread that ends the communicator, and each piece of its memory.
    std::atomic<int> owners{1};
};

// Scope of a call of NCCL, whose name others tell where it does not return.
class Inside {
public:
    Inside(std::atomic<const char *> &in, const char *function) : in_(in) { in_.store(function); }
    ~Inside() { in_.store(nullptr); }
    Inside(const Inside &) = delete;
    Inside &operator=(const Inside &) = delete;

private:
    std::atomic<const char *> &in_;
};

inline void retain(Comm &comm)
{
    comm.owners.fetch_add(1, std::memory_order_relaxed);
}

void release(Comm &comm);

// A thread in a call of NCCL. The end of the process waits for those that are under way, and lets none begin.
class Calling {
public:
    Calling();
    ~Calling();
    Calling(const Calling &) = delete;
    Calling &operator=(const Calling &) = delete;

    bool is_allowed() const { return is_allowed_; }

private:
    bool is_allowed_;
};

// How long somebody waits for NCCL, and what else ends the wait.
struct Limit {
    Clock::time_point until = Clock::time_point::max();
    int32_t (*is_over)(void *user) = nullptr;
    void *user = nullptr;
    bool heeds_abort = true;

    // Below 0: for good.
    static Limit of(double seconds);
    static Limit none_at_all() { return {.until = Clock::time_point::min()}; }
};

// kStuck: a function of NCCL has not returned in time; kLate: all have, and other ranks are waited for.
enum class Ending { kDone, kFailed, kLate, kStuck, kAborted, kOver };

// The right to call NCCL on a communicator.
class Turn {
public:
    // Waits until nobody else has it. Who aborts the communicator may keep the turn for good.
    Turn(Comm &comm, const Limit &limit);
    ~Turn();
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    bool is_given() const { return ending_ == Ending::kDone; }
    // Returns kDone, or why it was not given: kStuck where a call of NCCL has not returned to its owner, kAborted where
    // the process ends.
    Ending ending() const { return ending_; }

private:
    Calling calling_;
    Comm &comm_;
    Ending ending_ = Ending::kAborted;
};

struct Outcome {
    Ending ending;
    ncclResult_t result = ncclSuccess;  // of kFailed
};

// Waits in a Turn for the end of a call that said `said`.
Outcome settle(Comm &comm, ncclResult_t said, const Limit &limit);

// Whether NCCL may still be called: not in a forked child, and not once the process has begun to end.
bool may_call();

enum class Making { kBegins, kIsDone };

// Has the end of the process wait for the calls under way, and stops later ones: until the time that share_exit was
// given tells 0, or for 5 s. Called before the first communicator of a device is made, which the end may come amid, and
// after it: what NCCL and its runtime asked for, to be called at the end, then comes after this.
void guard_exit(const Device &device, Making making);
// Takes the function of yoke_backend_comm::share_exit.
void share_exit(double (*time_left)());

// Closes a device that was opened once more; leaves it to the end of the process where that has begun.
void close_device(Device *device);

}  // namespace yoke::cuda::nccl
