// The engine's table: arguments, groups of calls and the life of a communicator.
#include "kernels/cpu/comm/comm.h"

#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "kernels/common/collective.h"
#include "kernels/common/entries.h"
#include "kernels/cpu/comm/engine.h"
#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

Comm::Comm() = default;
Comm::~Comm() = default;

bool Comm::is_all_shared() const
{
    for (int peer = 0; peer < size; ++peer)
        if (peer != rank && !shares_with(peer)) return false;
    return size > 1;
}

namespace {

using kernels::is_message;
using kernels::reduces;

CombineFn g_combine = nullptr;

// Runs f and returns its status; YOKE_E_OOM if f throws. Only allocations of the C++ library can throw in f.
template <class F>
yoke_status guarded(const char *call, const F &f)
{
    try {
        return f();
    } catch (const std::exception &) {
        return fail(YOKE_E_OOM, "cpu: no host memory for %s", call);
    }
}

// Runs f and returns its status; YOKE_E_OOM if f throws. In this case the peers may be in the middle of the call, so
// the communicator counts as failed.
template <class F>
yoke_status guarded(const char *call, Comm &comm, const F &f)
{
    bool returned = false;
    const yoke_status status = guarded(call, [&] {
        const yoke_status result = f();
        returned = true;
        return result;
    });
    comm.has_failed |= !returned;
    return status;
}

Comm &comm_of(void *handle)
{
    return *static_cast<Comm *>(handle);
}

yoke_status unique_id(void *id, double)
{
    return kernels::draw_id(g_host, "cpu", id);
}

yoke_status init(const yoke_comm_member *record, void **out)
{
    if (record->size < 1 || record->rank < 0 || record->rank >= record->size)
        return fail(YOKE_E_VALUE, "cpu: there is no rank %d in a group of %d", record->rank,
                    record->size);
    return guarded("a communicator", [&] {
        auto made = std::make_unique<Comm>();
        made->combine = g_combine;
        if (record->fault) {
            record->fault->kind = YOKE_COMM_FAULT_NONE;
            record->fault->rank = -1;
        }
        if (yoke_status status = connect(*made, *record)) return status;
        made->flow = std::make_unique<Flow>(*made);
        *out = made.release();
        return YOKE_OK;
    });
}

yoke_status split(void *, const yoke_comm_member *record, void **out)
{
    return init(record, out);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

yoke_status check_call(const Comm &comm, const yoke_collective &call)
{
    if (yoke_status status = kernels::check_arguments({g_host, "cpu", comm.rank, comm.size}, call))
        return status;
    if (comm.aborted.load()) {
        if (call.fault) call.fault->kind = YOKE_COMM_FAULT_ABORTED;
        return fail(YOKE_E_CANCELLED, "cpu: this communicator was aborted");
    }
    if (comm.has_failed)
        return fail(YOKE_E_STATE, "cpu: an earlier call of this communicator has failed");
    return YOKE_OK;
}

// Runs a call, or several messages together.
yoke_status run_calls(Comm &comm, const yoke_collective *calls, size_t count)
{
    if (is_message(calls->op)) return run_messages(comm, calls, count);
    return reduces(calls->op) ? run_reduction(comm, *calls) : run_exchange(comm, *calls);
}

auto runner(Comm &comm)
{
    return [&comm](const yoke_collective *calls, size_t count) {
        return run_calls(comm, calls, count);
    };
}

yoke_status call(void *handle, const yoke_collective *record)
{
    Comm &comm = comm_of(handle);
    if (record->fault) {
        record->fault->kind = YOKE_COMM_FAULT_NONE;
        record->fault->rank = -1;
    }
    if (yoke_status status = check_call(comm, *record)) return status;
    return guarded("a collective", comm, [&] { return comm.group.pass(*record, runner(comm)); });
}

yoke_status group_begin(void *handle)
{
    comm_of(handle).group.begin();
    return YOKE_OK;
}

yoke_status group_end(void *handle)
{
    Comm &comm = comm_of(handle);
    if (!comm.group.is_open())
        return fail(YOKE_E_STATE, "cpu: group_end was called without group_begin");
    if (!comm.group.end()) return YOKE_OK;
    const yoke_status status =
        guarded("a group of collectives", comm, [&] { return comm.group.run_all(runner(comm)); });
    comm.group.clear();
    return status;
}

yoke_status abort(void *handle)
{
    Comm &comm = comm_of(handle);
    comm.aborted.store(true);
    wake_event(comm.event.get());
    if (comm.bell) ring_always(*comm.bell);
    return YOKE_OK;
}

// Closes the sending side of all links. Peers can still read the bytes written before.
void hang_up(void *handle)
{
    for (const auto &link : comm_of(handle).links)
        if (link) shutdown(link->socket(), SHUT_WR);
}

void destroy(void *handle)
{
    delete static_cast<Comm *>(handle);
}

// ---- memory and descriptions --------------------------------------------------------------------------------------

yoke_status mem_alloc(void *handle, uint64_t bytes, void **pointer, yoke_comm_fault *)
{
    if (bytes == 0 || bytes > UINT64_MAX / 2)
        return fail(YOKE_E_VALUE, "cpu: mem_alloc cannot allocate %llu bytes",
                    (unsigned long long)bytes);
    return guarded("shared memory", [&] {
        Comm &comm = comm_of(handle);
        return comm.regions.make(comm, bytes, pointer);
    });
}

yoke_status mem_free(void *handle, void *pointer, uint64_t bytes)
{
    return comm_of(handle).regions.drop(pointer, bytes);
}

void describe(void *handle, char *text, uint64_t capacity)
{
    const Comm &comm = comm_of(handle);
    int shared = 0, far = 0;
    for (int peer = 0; peer < comm.size; ++peer) {
        if (peer == comm.rank) continue;
        ++(comm.shares_with(peer) ? shared : far);
    }
    snprintf(text, capacity, "rank %d of %d, %zu node%s: shared memory with %d, TCP with %d%s%s",
             comm.rank, comm.size, comm.layout.nodes.size(),
             comm.layout.nodes.size() == 1 ? "" : "s", shared, far,
             comm.address.empty() ? "" : " from ", comm.address.c_str());
}

yoke_status async_error(void *, yoke_comm_fault *)
{
    return YOKE_OK;  // a call returns its own failure
}

void after_fork()
{
    Inherited::map_in_child();
    close_in_child();
}

constexpr yoke_backend_comm kEngine = {
    .struct_size = sizeof(yoke_backend_comm),
    .abi = YOKE_BACKEND_ABI,
    .name = "cpu",
    .is_late = 0,
    .reserved = 0,
    YOKE_COMM_CALL_ENTRIES(YOKE_TABLE_ENTRY)  // unique_id to abort
        .hang_up = hang_up,
    YOKE_COMM_MEMORY_ENTRIES(YOKE_TABLE_ENTRY)  // destroy to async_error
        .after_fork = after_fork,
    .version = nullptr,
    .share_exit = nullptr,
};

}  // namespace

const yoke_backend_comm *engine(CombineFn combine)
{
    g_combine = combine;
    return &kEngine;
}

}  // namespace yoke::cpu::comm
