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

constexpr Clock::duration kTurnPatience = 60s;    // for a call of NCCL that has not returned
constexpr Clock::duration kKernelPatience = 10s;  // for kernels of a communicator that was aborted

// Waits for the event of the communicator's last work. Returns cudaErrorNotReady if the limit or an abort comes
// first, or if there is no event.
cudaError_t wait_for_work(const Comm &comm, const Limit &limit)
{
    if (!comm.last.has_called.load()) return cudaSuccess;
    cudaError_t state = cudaErrorNotReady;
    while (comm.last.event && may_call() && Clock::now() < limit.until) {
        if (limit.heeds_abort && comm.aborted.load()) break;
        state = cudaEventQuery(comm.last.event);
        if (state != cudaErrorNotReady) break;
        usleep(1000);
    }
    cudaGetLastError();
    return state;
}

void drop_event(Comm &comm)
{
    if (!comm.last.event) return;
    log_failure(*comm.device, cudaEventDestroy(comm.last.event), "destroy: cudaEventDestroy");
    comm.last.event = nullptr;
}

void tell(const Comm &comm, const Outcome &outcome)
{
    const Place place = place_of(comm, "destroy");
    if (outcome.ending == Ending::kFailed)
        warn_at(place, "ncclCommFinalize failed: %s; the communicator is aborted",
                find_calls()->ncclGetErrorString(outcome.result));
    if (outcome.ending == Ending::kLate)
        warn_at(
            place,
            "other ranks have not released the communicator in time; the communicator is aborted");
}

// Waits for the work, deregisters memory and finalizes the communicator, within its timeout. Returns whether NCCL has
// ended its work, here and at the peers. A communicator that was aborted or has failed is not finalized.
bool finalize(Comm &comm)
{
    const Limit limit = Limit::of(comm.patience_s);
    if (comm.aborted.load() || comm.has_failed.load()) return false;
    if (wait_for_work(comm, limit) != cudaSuccess) return false;
    deregister_all(comm);
    if (!may_call()) return false;
    const Outcome outcome = settle(comm, find_calls()->ncclCommFinalize(comm.handle), limit);
    tell(comm, outcome);
    return outcome.ending == Ending::kDone;
}

bool has_passed(const Comm &comm, ncclResult_t result, const char *function, const char *remedy)
{
    if (result == ncclSuccess || result == ncclInProgress) return true;
    warn_at(place_of(comm, "destroy"), "%s failed: %s; %s", function,
            find_calls()->ncclGetErrorString(result), remedy);
    return false;
}

// Finalizes and destroys the communicator, or else aborts it. Returns whether NCCL has released the communicator.
bool has_let_go(Comm &comm)
{
    const bool is_final = finalize(comm);
    if (!may_call()) return false;
    const Calls &call = *find_calls();
    if (is_final && has_passed(comm, call.ncclCommDestroy(comm.handle), "ncclCommDestroy",
                               "the communicator is aborted"))
        return true;
    return has_passed(comm, call.ncclCommAbort(comm.handle), "ncclCommAbort",
                      "the communicator and its memory are not freed");
}

// Ends the communicator in NCCL, in a Turn. Returns false, with a warning, if a call of NCCL has not returned or NCCL
// fails; the handle then stays.
bool end(Comm &comm)
{
    const Turn turn(comm, Limit{.until = Clock::now() + kTurnPatience, .heeds_abort = false});
    if (!turn.is_given()) {
        if (may_call())
            warn_at(
                place_of(comm, "abort"),
                "a call of NCCL has not returned; the communicator and its memory are not freed");
        return false;
    }
    const RelaxedScope scope(comm.device, "destroy");
    if (scope.status() || !has_let_go(comm)) return false;
    comm.handle = nullptr;
    return true;
}

// Keeps the communicator in a list, so it is not reported as a leak.
void leave_behind(Comm &comm)
{
    static std::atomic<Comm *> left{nullptr};
    comm.next_left = left.load();
    while (!left.compare_exchange_weak(comm.next_left, &comm)) continue;
}

// Waits for the communicator's kernels and returns whether they have ended. For all ranks of a process but the last,
// NCCL's abort returns while kernels still run and write to the memory.
bool has_ended_work(Comm &comm)
{
    const Calling calling;
    if (!calling.is_allowed()) return false;
    const RelaxedScope scope(comm.device, "destroy");
    if (scope.status()) return false;
    const Limit limit{.until = Clock::now() + kKernelPatience, .heeds_abort = false};
    if (wait_for_work(comm, limit) == cudaErrorNotReady) {
        if (may_call())
            warn_at(place_of(comm, "destroy"),
                    "kernels have not finished; the communicator's memory is not freed");
        return false;
    }
    drop_event(comm);
    return true;
}

void *free_rest(void *argument)
{
    Comm &comm = *static_cast<Comm *>(argument);
    if (!has_ended_work(comm)) {
        leave_behind(comm);
        return nullptr;
    }
    forget_communicator(comm);
    release(comm);
    return nullptr;
}

// Counts a release, by NCCL or by the core. Returns whether both have now released the communicator: the event of the
// last work exists then.
bool is_second(Comm &comm)
{
    return comm.let_go.fetch_add(1) == 1;
}

void *run(void *argument)
{
    Comm &comm = *static_cast<Comm *>(argument);
    if (!end(comm))
        leave_behind(comm);
    else if (is_second(comm))
        free_rest(&comm);
    return nullptr;
}

// Records an event for the thread that ends the communicator, after the last call on its stream. Without the event,
// the end of this work is unknown.
void note_last_work(Comm &comm)
{
    const Calling calling;
    if (!comm.last.has_called.load() || !calling.is_allowed()) return;
    const RelaxedScope scope(comm.device, "destroy");
    if (scope.status()) return;
    cudaEvent_t event = nullptr;
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (!error) error = cudaEventRecord(event, comm.last.stream.load());
    log_failure(*comm.device, error, "destroy: an event behind the last collective");
    if (error && event) log_failure(*comm.device, cudaEventDestroy(event), "cudaEventDestroy");
    if (!error) comm.last.event = event;
}

void warn_no_thread(Comm &comm)
{
    leave_behind(comm);
    warn_at(
        place_of(comm, "destroy"),
        "the system has no thread that could end the communicator; the communicator and its memory are not freed");
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
    if (!start_detached(run, &comm)) warn_no_thread(comm);
}

void dispose(Comm &comm)
{
    note_last_work(comm);
    reap(comm);
    if (is_second(comm) && !start_detached(free_rest, &comm)) warn_no_thread(comm);
    release(comm);
}

}  // namespace yoke::cuda::nccl
