// Communicator of the engine "nccl", and the order of NCCL calls on a communicator.
//
// Contract
//  * Communicators are non-blocking. Each NCCL call on a communicator is made in a Turn. The turn lasts until NCCL
//    has finished the call: NCCL allows only one call at a time.
//  * A thread that waits in a Turn leaves it when the communicator is aborted, when the time is over, and when the
//    process ends. If an NCCL call does not return, a caller of a collective cannot be freed; other calls are made
//    aside (aside.h).
//  * `abort` and `destroy` of the engine's table give the communicator to a thread (reaper.h) and do not wait.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "core/backend/comm.h"
#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/nccl/abi.h"

namespace yoke::cuda::nccl {

using Clock = std::chrono::steady_clock;

// Memory that the caller has freed, and that a thread frees in NCCL, one thread at a time (memory.h).
struct Freeing {
    std::atomic<bool> has_marked{false};  // given back amid a call
    std::atomic<int> asked{0};            // requests since a thread began; 0: no thread is active
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
    cudaEvent_t event = nullptr;  // after the last work, once no other work can follow
};

struct Comm {
    Device *device =
        nullptr;  // opened once more, for NCCL is at work there after the core has closed it
    int rank = 0, size = 1;
    double patience_s = -1;       // timeout of calls without an own timeout; below 0: no limit
    ncclComm_t handle = nullptr;  // NCCL's handle, under `turn`; null after its end
    TurnLock turn;
    std::atomic<bool> aborted{false};
    std::atomic<bool> has_failed{false};
    std::atomic<bool> is_in_reaper{false};
    std::atomic<bool> has_windows{false};  // NCCL has given a window of memory shared with peers
    Freeing freeing;
    LastWork last;
    std::atomic<int> let_go{0};  // releases so far: by NCCL and by the core
    Comm *next_left = nullptr;   // in the list of communicators left behind
    // Number of owners: the core's handle, the thread that ends the communicator, and each piece of memory.
    std::atomic<int> owners{1};
};

// Scope of an NCCL call. If the call does not return, other threads report its name.
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

// Thread in an NCCL call. The end of the process waits for current calls and prevents new calls.
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

// Limit of a wait for NCCL, with other conditions that end the wait.
struct Limit {
    Clock::time_point until = Clock::time_point::max();
    int32_t (*is_over)(void *user) = nullptr;
    void *user = nullptr;
    bool heeds_abort = true;

    // Returns a limit `seconds` from now. Below 0 there is no limit.
    static Limit of(double seconds);
    static Limit none_at_all() { return {.until = Clock::time_point::min()}; }
};

// Result of a wait for NCCL. kStuck: a function of NCCL has not returned in time. kLate: all functions have returned,
// and other ranks are missing.
enum class Ending { kDone, kFailed, kLate, kStuck, kAborted, kOver };

// The right to call NCCL on a communicator.
class Turn {
public:
    // Waits until no other thread has the turn. Waits no longer than the limit, and not after an abort or the start
    // of the process's end. A thread that aborts the communicator may keep the turn forever.
    Turn(Comm &comm, const Limit &limit);
    ~Turn();
    Turn(const Turn &) = delete;
    Turn &operator=(const Turn &) = delete;

    bool is_given() const { return ending_ == Ending::kDone; }
    // Returns kDone if the turn was given. Returns kStuck if the limit ended while a call of the turn's owner had not
    // returned from NCCL, and else kLate. After an abort, or when the process ends, returns kAborted.
    Ending ending() const { return ending_; }

private:
    Calling calling_;
    Comm &comm_;
    Ending ending_ = Ending::kAborted;
};

struct Outcome {
    Ending ending;
    ncclResult_t result = ncclSuccess;  // for kFailed
};

// Waits in a Turn until NCCL has finished a call that returned `said`. Returns kDone, kFailed with NCCL's result, or
// the reason to wait no longer: limit, is_over, abort, or end of the process.
Outcome settle(Comm &comm, ncclResult_t said, const Limit &limit);

// Returns whether NCCL may still be called: not in a forked child, and not once the process has begun to end.
bool may_call();

enum class Making { kBegins, kIsDone };

// Makes the end of the process wait for current calls, and stops later calls. The function of share_exit gives the
// longest wait in seconds; without it, 5 s. Called before the first communicator of a device is made, because the
// process may end during this step. Called again afterwards, so handlers of NCCL and its runtime for the end run
// after this handler.
void guard_exit(const Device &device, Making making);
// Takes the function of yoke_backend_comm::share_exit.
void share_exit(double (*time_left)());

// Closes a device that was opened once more. If the process has begun to end, the device stays open.
void close_device(Device *device);

}  // namespace yoke::cuda::nccl
