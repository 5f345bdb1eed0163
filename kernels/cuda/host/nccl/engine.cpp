// The engine's table: each entry, and the life of a communicator.
#include "kernels/cuda/host/nccl/engine.h"

#include <cstdio>

#include "kernels/common/entries.h"
#include "kernels/cuda/host/nccl/aside.h"
#include "kernels/cuda/host/nccl/calls.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/init.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/memory.h"
#include "kernels/cuda/host/nccl/reaper.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

namespace {

Comm &comm_of(void *handle)
{
    return *static_cast<Comm *>(handle);
}

yoke_status refuse_forked(const char *call)
{
    return fail(YOKE_E_FORKED, 0,
                "%s: NCCL does not work in a forked child; start the child with spawn or exec",
                call);
}

yoke_status unique_id(void *id, double timeout_s)
{
    return draw_id(id, timeout_s);
}

yoke_status init(const yoke_comm_member *member, void **out)
{
    Comm *made = nullptr;
    const yoke_status status = make(*member, &made);
    if (!status) *out = made;
    return status;
}

// Makes a communicator of the calling ranks, in the same way as init. NCCL's own split needs all ranks of a parent,
// without work.
yoke_status split(void *, const yoke_comm_member *member, void **out)
{
    return init(member, out);
}

yoke_status call_entry(void *handle, const yoke_collective *record)
{
    return call(comm_of(handle), *record);
}

yoke_status group_begin(void *)
{
    begin_group();
    return YOKE_OK;
}

yoke_status group_end(void *handle)
{
    return end_group(comm_of(handle));
}

yoke_status abort(void *handle)
{
    if (is_forked()) return YOKE_OK;
    Comm &comm = comm_of(handle);
    comm.aborted.store(true);
    reap(comm);
    return YOKE_OK;
}

void destroy(void *handle)
{
    if (is_forked()) return;
    dispose(comm_of(handle));
}

yoke_status mem_alloc(void *handle, uint64_t bytes, void **pointer, yoke_comm_fault *fault)
{
    clear(fault);
    return is_forked() ? refuse_forked("mem_alloc")
                       : allocate(comm_of(handle), bytes, pointer, fault);
}

yoke_status mem_free(void *handle, void *pointer, uint64_t bytes)
{
    return is_forked() ? refuse_forked("mem_free")
                       : give_back(static_cast<Comm *>(handle), pointer, bytes);
}

void describe(void *handle, char *text, uint64_t capacity)
{
    const Comm &comm = comm_of(handle);
    const int version = find_version();
    snprintf(text, capacity, "rank %d of %d on cuda:%d: NCCL %d.%d.%d%s", comm.rank, comm.size,
             comm.device->index, version / 10000, version % 10000 / 100, version % 100,
             comm.has_windows.load() ? ", with windows" : "");
}

// Question for the state of a communicator. If another thread has the turn, its call reports the failure itself.
class Question final : public Aside {
public:
    explicit Question(Comm &comm) : Aside(comm.device, "async_error"), comm_(comm)
    {
        retain(comm_);
    }

private:
    ~Question() override { release(comm_); }
    Outcome run() override
    {
        const Turn turn(comm_, Limit::none_at_all());
        if (!turn.is_given() || !comm_.handle) return {Ending::kDone};
        ncclResult_t state = ncclSuccess;
        const Inside inside(comm_.turn.in, "ncclCommGetAsyncError");
        const ncclResult_t asked = find_calls()->ncclCommGetAsyncError(comm_.handle, &state);
        if (asked != ncclSuccess) state = asked;
        if (state == ncclSuccess || state == ncclInProgress) return {Ending::kDone};
        return {Ending::kFailed, state};
    }

    Comm &comm_;
};

// Asks NCCL whether a call of the communicator has failed, and reports the failure. Also fails after an abort. Waits
// only a moment: if NCCL does not return, this is not a failure, because the calls have their own deadlines.
yoke_status async_error(void *handle, yoke_comm_fault *fault)
{
    Comm &comm = comm_of(handle);
    clear(fault);
    const Place place = place_of(comm, "async_error");
    if (comm.aborted.load())
        return fail_wait(place, nullptr, {Ending::kAborted}, "a collective", fault);
    const auto question = start_aside<Question>(comm);
    if (!question) return YOKE_OK;
    const Outcome outcome = question->wait(Limit{.until = Clock::now()});
    if (outcome.ending != Ending::kFailed) return YOKE_OK;
    comm.has_failed.store(true);
    const RelaxedScope scope(comm.device, "async_error");
    return fail_wait(place, nullptr, outcome, "ncclCommGetAsyncError", fault);
}

void after_fork_entry()
{
    after_fork();
}

int32_t version(double timeout_s, char *why, uint64_t capacity)
{
    const int32_t found = is_forked() ? 0 : find_version(timeout_s);
    if (capacity)
        snprintf(why, capacity, "%s",
                 is_forked()
                     ? "NCCL does not work in a forked child; start the child with spawn or exec"
                     : why_unavailable());
    return found;
}

}  // namespace

const yoke_backend_comm kEngine = {
    .struct_size = sizeof(yoke_backend_comm),
    .abi = YOKE_BACKEND_ABI,
    .name = "nccl",
    .is_late = 1,
    .reserved = 0,
    .unique_id = unique_id,
    .init = init,
    .split = split,
    .call = call_entry,
    .group_begin = group_begin,
    .group_end = group_end,
    .abort = abort,
    .hang_up = nullptr,
    YOKE_COMM_MEMORY_ENTRIES(YOKE_TABLE_ENTRY)  // destroy to async_error
        .after_fork = after_fork_entry,
    .version = version,
    .share_exit = share_exit,
};

}  // namespace yoke::cuda::nccl
