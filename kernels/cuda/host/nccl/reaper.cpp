#include "kernels/cuda/host/nccl/reaper.h"

#include <pthread.h>
#include <unistd.h>

#include "kernels/common/signals_blocked.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/memory.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

using namespace std::chrono_literals;

namespace {

constexpr Clock::duration kTurnPatience = 60s;  // for a call of NCCL that has not returned

// Whether all work of the communicator is done before time is over or somebody aborts it.
bool is_quiet(Comm &comm, const Limit &limit)
{
    if (!comm.has_called) return true;
    if (!comm.last_event) return false;
    cudaError_t state = cudaErrorNotReady;
    while (may_call() && !comm.aborted.load() && Clock::now() < limit.until) {
        state = cudaEventQuery(comm.last_event);
        if (state != cudaErrorNotReady) break;
        usleep(1000);
    }
    cudaGetLastError();
    return state == cudaSuccess;
}

void drop_event(Comm &comm)
{
    if (!comm.last_event || !may_call()) return;
    log_failure(*comm.device, cudaEventDestroy(comm.last_event), "destroy: cudaEventDestroy");
    comm.last_event = nullptr;
}

void tell(const Comm &comm, const Outcome &outcome)
{
    const Place place = place_of(comm, "destroy");
    if (outcome.ending == Ending::kFailed)
        warn_at(place, "ncclCommFinalize failed: %s; the communicator is aborted",
                find_calls()->ncclGetErrorString(outcome.result));
    if (outcome.ending == Ending::kLate)
        warn_at(place, "other ranks have not let go of it in time; the communicator is aborted");
}

// Whether NCCL has ended what it had to do, here and at the peers.
bool finalize(Comm &comm)
{
    const Limit limit = Limit::of(comm.patience_s);
    if (comm.aborted.load() || comm.has_failed.load() || !is_quiet(comm, limit)) return false;
    deregister_all(comm);
    if (!may_call()) return false;
    const Outcome outcome = settle(comm, find_calls()->ncclCommFinalize(comm.handle), limit);
    tell(comm, outcome);
    return outcome.ending == Ending::kDone;
}

void let_go(Comm &comm)
{
    const bool is_final = finalize(comm);
    drop_event(comm);
    if (!may_call()) return;
    const Calls &call = *find_calls();
    const ncclResult_t result =
        is_final ? call.ncclCommDestroy(comm.handle) : call.ncclCommAbort(comm.handle);
    if (result != ncclSuccess && result != ncclInProgress)
        warn_at(place_of(comm, is_final ? "destroy" : "abort"), "%s failed: %s",
                is_final ? "ncclCommDestroy" : "ncclCommAbort", call.ncclGetErrorString(result));
}

// Whether the communicator has gone.
bool end(Comm &comm)
{
    const Turn turn(comm, Limit{.until = Clock::now() + kTurnPatience, .heeds_abort = false});
    if (!turn.is_given()) {
        if (may_call())
            warn_at(place_of(comm, "abort"),
                    "a call of NCCL has not returned; the communicator and its memory are left");
        return false;
    }
    const RelaxedScope scope(comm.device, "destroy");
    if (scope.status()) return false;
    let_go(comm);
    if (!may_call()) return false;
    comm.handle = nullptr;
    return true;
}

// Keeps it where it can be found, so that it counts as no leak.
void leave_behind(Comm &comm)
{
    static std::atomic<Comm *> left{nullptr};
    comm.next_left = left.load();
    while (!left.compare_exchange_weak(comm.next_left, &comm)) continue;
}

void *run(void *argument)
{
    Comm &comm = *static_cast<Comm *>(argument);
    if (!end(comm)) {
        leave_behind(comm);
        return nullptr;
    }
    forget_communicator(comm);
    release(comm);
    return nullptr;
}

}  // namespace

bool start_detached(void *(*run)(void *), void *argument)
{
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    const kernels::SignalsBlocked blocked;
    const bool started = pthread_create(&thread, &attributes, run, argument) == 0;
    pthread_attr_destroy(&attributes);
    return started;
}

void reap(Comm &comm)
{
    if (comm.is_in_reaper.exchange(true)) return;
    retain(comm);
    if (start_detached(run, &comm)) return;
    leave_behind(comm);
    warn_at(place_of(comm, "destroy"),
            "the system has no thread to end the communicator in; it and its memory are left");
}

void note_last_work(Comm &comm)
{
    if (!comm.has_called || comm.aborted.load() || comm.is_in_reaper.load()) return;
    const RelaxedScope scope(comm.device, "destroy");
    if (scope.status()) return;
    cudaEvent_t event = nullptr;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (!error) error = cudaEventRecord(event, comm.last_stream);
    log_failure(*comm.device, error, "destroy: an event behind the last collective");
    if (error && event) log_failure(*comm.device, cudaEventDestroy(event), "cudaEventDestroy");
    if (!error) comm.last_event = event;
}

}  // namespace yoke::cuda::nccl
