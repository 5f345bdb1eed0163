#include "kernels/cuda/host/nccl/init.h"

#include <cstring>
#include <new>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/aside.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/peers.h"
#include "kernels/cuda/host/nccl/reaper.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

namespace {

// Aborts a communicator whose creation failed. If NCCL has made a handle, a separate thread ends it.
void give_up(Comm &comm)
{
    comm.aborted.store(true);
    if (comm.handle)
        dispose(comm);
    else
        release(comm);
}

// Rendezvous of the ranks in NCCL. It has the communicator's turn, because no other thread knows the communicator
// yet.
class Connecting final : public Aside {
public:
    Connecting(const yoke_comm_member &member, Comm &comm, const Limit &limit)
        : Aside(comm.device, "init"), comm_(comm), limit_(limit)
    {
        limit_.is_over = nullptr;   // asked by the caller
        limit_.heeds_abort = true;  // abort by a caller that has left
        memcpy(id_.internal, member.id, sizeof id_.internal);
        retain(comm_);
    }

private:
    ~Connecting() override { release(comm_); }
    Outcome run() override;
    void take_back() override { give_up(comm_); }

    Comm &comm_;
    Limit limit_;
    ncclUniqueId id_;
};

Outcome Connecting::run()
{
    const Turn turn(comm_, limit_);
    if (!turn.is_given()) return {turn.ending()};
    ncclConfig_t config;
    config.blocking = 0;
    const ncclResult_t said = in("ncclCommInitRankConfig", [&] {
        return find_calls()->ncclCommInitRankConfig(&comm_.handle, comm_.size, id_, comm_.rank,
                                                    &config);
    });
    return comm_.handle ? settle(comm_, said, limit_) : Outcome{Ending::kFailed, said};
}

Limit limit_of(const yoke_comm_member &member)
{
    Limit limit = Limit::of(member.timeout_s);
    limit.is_over = member.is_over;
    limit.user = member.user;
    limit.heeds_abort = false;
    return limit;
}

// Finds the member's device. Returns the reason that this rank cannot go on by itself, such as a missing NCCL, or
// YOKE_OK.
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
    const Limit limit = limit_of(member);
    const auto connecting = start_aside<Connecting>(member, *comm, limit);
    if (!connecting) {
        const yoke_status status =
            fail_at(place_of(*comm, "init"), YOKE_E_OOM,
                    "the system has no thread or memory for a call of NCCL; check ulimit -u");
        release(*comm);
        return status;
    }
    const Outcome outcome = connecting->wait(limit, comm);
    if (outcome.ending == Ending::kDone) {
        guard_exit(*device, Making::kIsDone);
        *out = comm;
        return YOKE_OK;
    }
    const RelaxedScope scope(device, "init");
    const yoke_status status =
        fail_wait(place_of(*comm, "init"), nullptr, outcome, connecting->function(), member.fault);
    comm->aborted.store(true);
    if (!connecting->is_left()) give_up(*comm);
    return status;
}

// Call that asks NCCL for an id, and the id.
class Drawing final : public Aside {
public:
    Drawing() : Aside(nullptr, "unique_id") {}
    ncclUniqueId id;

private:
    Outcome run() override
    {
        const ncclResult_t said =
            in("ncclGetUniqueId", [&] { return find_calls()->ncclGetUniqueId(&id); });
        return said == ncclSuccess ? Outcome{Ending::kDone} : Outcome{Ending::kFailed, said};
    }
};

yoke_status tell_no_id(const Outcome &outcome, double timeout_s)
{
    if (outcome.ending != Ending::kFailed)
        return fail(
            YOKE_E_TIMEOUT, 0,
            "unique_id: ncclGetUniqueId has not returned within %g s: NCCL finds no network, or hangs; check that NCCL_SOCKET_IFNAME names a network of this machine, and set NCCL_DEBUG=INFO for details",
            timeout_s);
    const Calls &call = *find_calls();
    const char *words = call.ncclGetLastError(nullptr);
    return fail(
        YOKE_E_COMM, outcome.result,
        "unique_id: ncclGetUniqueId failed with %s (%d): %.600s; check that NCCL_SOCKET_IFNAME names a network of this machine",
        call.ncclGetErrorString(outcome.result), static_cast<int>(outcome.result),
        words ? words : "");
}

}  // namespace

yoke_status draw_id(void *id, double timeout_s)
{
    static_assert(sizeof(ncclUniqueId) == YOKE_COMM_ID_BYTES);
    if (is_forked())
        return fail(YOKE_E_FORKED, 0,
                    "unique_id: NCCL does not serve a forked child; start it with spawn or exec");
    if (!find_calls()) return fail(YOKE_E_UNAVAILABLE, 0, "unique_id: %s", why_unavailable());
    const auto drawing = start_aside<Drawing>();
    if (!drawing)
        return fail(
            YOKE_E_OOM, 0,
            "unique_id: the system has no thread or memory for a call of NCCL; check ulimit -u");
    const Outcome outcome = drawing->wait(Limit::of(timeout_s));
    if (outcome.ending != Ending::kDone) return tell_no_id(outcome, timeout_s);
    memcpy(id, &drawing->id, sizeof drawing->id);
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
