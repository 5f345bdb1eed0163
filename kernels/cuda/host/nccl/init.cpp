#include "kernels/cuda/host/nccl/init.h"

#include <condition_variable>
#include <cstring>
#include <new>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/peers.h"
#include "kernels/cuda/host/nccl/reaper.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

using namespace std::chrono_literals;

namespace {

// NCCL's call, in a thread that is left to itself where the call does not return. Both sides own it.
class Rendezvous {
public:
    Rendezvous(const yoke_comm_member &member, Device *device)
        : device_(device), size_(member.size), rank_(member.rank)
    {
        memcpy(id_.internal, member.id, sizeof id_.internal);
    }
    // Keeps the device open, which the caller may close while NCCL's call goes on.
    bool start();
    void drop();

    // Waits for NCCL's call to return. Of one that is given up, the thread aborts what comes of it.
    Outcome wait(const Limit &limit, ncclComm_t *handle);

private:
    static void *run(void *self);
    ncclResult_t call(ncclComm_t *handle);
    void finish(ncclResult_t result, ncclComm_t handle);
    Ending give_up(Ending ending);

    Device *const device_;
    const int size_, rank_;
    ncclUniqueId id_;
    std::mutex lock_;
    std::condition_variable returned_;
    bool has_returned_ = false, is_given_up_ = false;
    ncclResult_t result_ = ncclSuccess;
    ncclComm_t handle_ = nullptr;
    std::atomic<int> owners_{2};
};

bool Rendezvous::start()
{
    void *opened = nullptr;
    if (device_open(device_->index, &opened)) return false;
    if (start_detached(run, this)) return true;
    close_device(device_);
    return false;
}

void Rendezvous::drop()
{
    if (owners_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    close_device(device_);
    delete this;
}

ncclResult_t Rendezvous::call(ncclComm_t *handle)
{
    const Calling calling;
    if (!calling.is_allowed()) return ncclInternalError;
    const RelaxedScope scope(device_, "init");
    if (scope.status()) return ncclInternalError;
    ncclConfig_t config;
    config.blocking = 0;
    return find_calls()->ncclCommInitRankConfig(handle, size_, id_, rank_, &config);
}

void Rendezvous::finish(ncclResult_t result, ncclComm_t handle)
{
    {
        const std::lock_guard<std::mutex> lock(lock_);
        has_returned_ = true;
        result_ = result;
        handle_ = handle;
        returned_.notify_all();
        if (!is_given_up_) return;
    }
    const Calling calling;
    if (!handle || !calling.is_allowed()) return;
    const RelaxedScope scope(device_, "init");
    if (!scope.status()) find_calls()->ncclCommAbort(handle);
}

void *Rendezvous::run(void *self)
{
    auto *rendezvous = static_cast<Rendezvous *>(self);
    ncclComm_t handle = nullptr;
    const ncclResult_t result = rendezvous->call(&handle);
    rendezvous->finish(result, handle);
    rendezvous->drop();
    return nullptr;
}

Outcome Rendezvous::wait(const Limit &limit, ncclComm_t *handle)
{
    std::unique_lock<std::mutex> lock(lock_);
    while (!has_returned_) {
        Ending ending = Ending::kDone;
        if (Clock::now() >= limit.until) ending = Ending::kLate;
        lock.unlock();  // is_over is the host program's
        if (limit.is_over && limit.is_over(limit.user)) ending = Ending::kOver;
        lock.lock();
        if (has_returned_) break;
        if (ending != Ending::kDone) {
            is_given_up_ = true;
            return {ending};
        }
        returned_.wait_for(lock, std::min<Clock::duration>(50ms, limit.until - Clock::now()));
    }
    *handle = handle_;
    return {Ending::kFailed, result_};  // for settle to go on with
}

Limit limit_of(const yoke_comm_member &member)
{
    Limit limit = Limit::of(member.timeout_s);
    limit.is_over = member.is_over;
    limit.user = member.user;
    limit.heeds_abort = false;
    return limit;
}

// Waits for the ranks in NCCL; the communicator has a handle then, unless NCCL gave none.
Outcome meet(const yoke_comm_member &member, Comm &comm)
{
    const Limit limit = limit_of(member);
    auto *rendezvous = new (std::nothrow) Rendezvous(member, comm.device);
    if (!rendezvous) return {Ending::kFailed, ncclSystemError};
    if (!rendezvous->start()) {
        delete rendezvous;
        return {Ending::kFailed, ncclSystemError};
    }
    Outcome outcome = rendezvous->wait(limit, &comm.handle);
    rendezvous->drop();
    if (outcome.ending != Ending::kFailed) return outcome;
    const Turn turn(comm, limit);
    if (!turn.is_given()) return {turn.ending()};
    const RelaxedScope scope(comm.device, "init");
    if (scope.status()) return {Ending::kFailed, ncclUnhandledCudaError};
    return comm.handle ? settle(comm, outcome.result, limit)
                       : Outcome{Ending::kFailed, outcome.result};
}

// Has the thread of the end take what NCCL has made so far.
void give_up(Comm &comm)
{
    comm.aborted.store(true);
    if (comm.handle)
        dispose(comm);
    else
        release(comm);
}

// Why this rank cannot go on by itself, or YOKE_OK.
yoke_status look_at_self(const yoke_comm_member &member, Device **device)
{
    if (const yoke_status status = device_of(member.device, "init", device)) return status;
    if (!find_calls()) return fail(YOKE_E_UNAVAILABLE, 0, "init: %s", why_unavailable());
    return YOKE_OK;
}

yoke_status connect(const yoke_comm_member &member, Device *device, Comm **out)
{
    Comm *comm = new (std::nothrow) Comm;
    if (!comm) return fail(YOKE_E_OOM, 0, "init: no host memory for a communicator");
    void *opened = nullptr;
    if (const yoke_status status = device_open(device->index, &opened)) {
        release(*comm);
        return status;
    }
    comm->device = device;
    comm->rank = member.rank;
    comm->size = member.size;
    comm->patience_s = member.patience_s ? member.patience_s : member.timeout_s;
    guard_exit(*device, Making::kBegins);
    const Outcome outcome = meet(member, *comm);
    if (outcome.ending == Ending::kDone) {
        guard_exit(*device, Making::kIsDone);
        *out = comm;
        return YOKE_OK;
    }
    const RelaxedScope scope(device, "init");
    const yoke_status status = fail_wait(place_of(*comm, "init"), comm->handle, outcome,
                                         "ncclCommInitRankConfig", member.fault);
    give_up(*comm);
    return status;
}

}  // namespace

yoke_status draw_id(void *id)
{
    static_assert(sizeof(ncclUniqueId) == YOKE_COMM_ID_BYTES);
    if (is_forked())
        return fail(YOKE_E_FORKED, 0,
                    "unique_id: NCCL does not serve a forked child; start it with spawn or exec");
    const Calls *call = find_calls();
    if (!call) return fail(YOKE_E_UNAVAILABLE, 0, "unique_id: %s", why_unavailable());
    ncclUniqueId made;
    const Calling calling;
    const ncclResult_t result =
        calling.is_allowed() ? call->ncclGetUniqueId(&made) : ncclInternalError;
    if (result != ncclSuccess) {
        const char *words = call->ncclGetLastError(nullptr);
        return fail(
            YOKE_E_COMM, result,
            "unique_id: ncclGetUniqueId failed with %s (%d): %.600s; see whether NCCL_SOCKET_IFNAME names a network of this machine",
            call->ncclGetErrorString(result), static_cast<int>(result), words ? words : "");
    }
    memcpy(id, &made, sizeof made);
    return YOKE_OK;
}

yoke_status make(const yoke_comm_member &member, Comm **out)
{
    clear(member.fault);
    Device *device = nullptr;
    if (member.size < 1 || member.rank < 0 || member.rank >= member.size)
        return fail(YOKE_E_VALUE, 0, "init: there is no rank %d in a group of %d", member.rank,
                    member.size);
    yoke_status status = look_at_self(member, &device);
    if (status == YOKE_E_FORKED) return status;
    if ((status = agree(member, device, status))) return status;
    return connect(member, device, out);
}

}  // namespace yoke::cuda::nccl
