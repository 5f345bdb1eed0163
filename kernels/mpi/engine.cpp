// The engine's table: arguments, groups of calls, memory, and the life of a communicator.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <mutex>

#include "kernels/common/collective.h"
#include "kernels/common/entries.h"
#include "kernels/mpi/flow.h"
#include "kernels/mpi/job.h"

namespace yoke::mpi {

namespace {

using kernels::is_message;
using kernels::reduces;

// Runs f and returns its status; YOKE_E_OOM if f throws. Only allocations and threads of the C++ library can throw in
// f.
template <class F>
yoke_status guarded(const char *call, const F &f)
{
    try {
        return f();
    } catch (const std::exception &) {
        return fail(YOKE_E_OOM, "mpi: there is no host memory or no thread for %s", call);
    }
}

Comm &comm_of(void *handle)
{
    return *static_cast<Comm *>(handle);
}

void clear(yoke_comm_fault *fault)
{
    if (!fault) return;
    fault->kind = YOKE_COMM_FAULT_NONE;
    fault->rank = -1;
    fault->keeps_memory = 0;
}

yoke_status unique_id(void *id, double)
{
    return kernels::draw_id(g_host, "mpi", id);
}

yoke_status init(const yoke_comm_member *member, void **out)
{
    if (member->size < 1 || member->rank < 0 || member->rank >= member->size)
        return fail(YOKE_E_VALUE, "mpi: there is no rank %d in a group of %d", member->rank,
                    member->size);
    return guarded("a communicator", [&] {
        auto made = std::make_unique<Comm>();
        clear(member->fault);
        if (yoke_status status = connect(*made, *member)) return status;
        *out = made.release();
        return YOKE_OK;
    });
}

yoke_status split(void *, const yoke_comm_member *member, void **out)
{
    return init(member, out);
}

// ---- calls ----------------------------------------------------------------------------------------------------------

yoke_status check_state(const Comm &comm, const yoke_collective &call)
{
    if (comm.aborted.load()) {
        if (call.fault) call.fault->kind = YOKE_COMM_FAULT_ABORTED;
        return fail(YOKE_E_CANCELLED, "mpi: this communicator was aborted");
    }
    if (comm.has_failed)
        return fail(YOKE_E_STATE, "mpi: an earlier call of this communicator has failed");
    if (!is_in_job())
        return fail(
            YOKE_E_STATE,
            "mpi: this process has left its MPI job, or is a forked child of a process of the job");
    return YOKE_OK;
}

yoke_status check_call(const Comm &comm, const yoke_collective &call)
{
    const yoke_status status =
        kernels::check_arguments({g_host, "mpi", comm.rank, comm.size}, call);
    return status ? status : check_state(comm, call);
}

// Runs a call, or several messages together.
yoke_status run_calls(Comm &comm, const yoke_collective *calls, size_t count)
{
    if (is_message(calls->op)) return run_messages(comm, calls, count);
    return reduces(calls->op) ? run_reduction(comm, *calls) : run_exchange(comm, *calls);
}

// Runs a call. If f throws, the peers, and perhaps MPI, may be in the middle of the call. Then the communicator
// counts as failed, and the call's memory must stay.
template <class F>
yoke_status guarded_call(Comm &comm, yoke_comm_fault *fault, const F &f)
{
    bool has_returned = false;
    const yoke_status status = guarded("a collective", [&] {
        const yoke_status result = f();
        has_returned = true;
        return result;
    });
    if (has_returned) return status;
    comm.has_failed = comm.is_abandoned = true;
    note_abandoned();
    if (fault) fault->keeps_memory = 1;
    return status;
}

yoke_status call(void *handle, const yoke_collective *record)
{
    Comm &comm = comm_of(handle);
    clear(record->fault);
    if (yoke_status status = check_call(comm, *record)) return status;
    const auto run = [&](const yoke_collective *calls, size_t count) {
        return run_calls(comm, calls, count);
    };
    return guarded_call(comm, record->fault, [&] { return comm.group.pass(*record, run); });
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
        return fail(YOKE_E_STATE, "mpi: group_end was called without group_begin");
    if (!comm.group.end()) return YOKE_OK;
    const yoke_status status = guarded_call(comm, comm.group.first_fault(), [&] {
        return comm.group.run_all([&](const yoke_collective *calls, size_t count) {
            const yoke_status state = check_state(comm, *calls);
            return state ? state : run_calls(comm, calls, count);
        });
    });
    comm.group.clear();
    return status;
}

yoke_status abort(void *handle)
{
    comm_of(handle).aborted.store(true);
    return YOKE_OK;
}

// Destroys a communicator. If MPI still has operations of the communicator, it stays in a list, so it is not reported
// as a leak.
void destroy(void *handle)
{
    static std::mutex &mutex = *new std::mutex;
    static std::vector<Comm *> &kept = *new std::vector<Comm *>;
    Comm *comm = static_cast<Comm *>(handle);
    if (comm->is_abandoned) {
        const std::lock_guard lock(mutex);
        kept.push_back(comm);
        return;
    }
    disconnect(*comm);
    delete comm;
}

// ---- memory and what there is to tell -------------------------------------------------------------------------------

yoke_status mem_alloc(void *handle, uint64_t bytes, void **pointer, yoke_comm_fault *)
{
    if (bytes == 0 || bytes > UINT64_MAX / 4)
        return fail(YOKE_E_VALUE, "mpi: mem_alloc cannot allocate %llu bytes",
                    static_cast<unsigned long long>(bytes));
    return guarded("shared memory",
                   [&] { return comm_of(handle).memory.allocate(bytes, pointer); });
}

yoke_status mem_free(void *handle, void *pointer, uint64_t)
{
    return comm_of(handle).memory.release(pointer);
}

void describe(void *handle, char *text, uint64_t capacity)
{
    const Comm &comm = comm_of(handle);
    snprintf(text, capacity, "rank %d of %d, %zu node%s: %s", comm.rank, comm.size,
             comm.nodes.size(), comm.nodes.size() == 1 ? "" : "s", library_name().c_str());
}

yoke_status async_error(void *, yoke_comm_fault *)
{
    return YOKE_OK;  // a call returns its own failure
}

constexpr yoke_backend_comm kEngine = {
    .struct_size = sizeof(yoke_backend_comm),
    .abi = YOKE_BACKEND_ABI,
    .name = "mpi",
    .is_late = 0,
    .reserved = 0,
    YOKE_COMM_CALL_ENTRIES(YOKE_TABLE_ENTRY)  // unique_id to abort
        .hang_up = nullptr,
    YOKE_COMM_MEMORY_ENTRIES(YOKE_TABLE_ENTRY)  // destroy to async_error
        .after_fork = note_fork,
    .version = nullptr,
    .share_exit = nullptr,
};

}  // namespace

}  // namespace yoke::mpi

// Keeps the host's table and returns the engine's table. The core calls this function once, before any other entry.
// Returns YOKE_E_UNSUPPORTED if the ABI of the host is another version.
extern "C" __attribute__((visibility("default"))) yoke_status yoke_comm_get_v1(
    const yoke_host *host, const yoke_backend_comm **out)
{
    if (host->abi != YOKE_BACKEND_ABI)
        return host->set_error(YOKE_E_UNSUPPORTED, host->abi,
                               "the mpi module was built for another version of the host");
    yoke::mpi::g_host = host;
    *out = &yoke::mpi::kEngine;
    return YOKE_OK;
}
