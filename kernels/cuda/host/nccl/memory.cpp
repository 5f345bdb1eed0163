#include "kernels/cuda/host/nccl/memory.h"

#include <cinttypes>
#include <new>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

using namespace std::chrono_literals;

namespace {

struct Memory {
    void *pointer = nullptr;
    uint64_t bytes = 0;
    Device *device = nullptr;
    Comm *comm = nullptr;           // null once that has gone
    ncclWindow_t window = nullptr;  // one of the two, or neither
    void *registration = nullptr;
    bool is_marked = false;   // given back, not yet freed
    bool is_refused = false;  // by NCCL, as the communicator was to go
    Memory *next = nullptr;
};

std::mutex g_lock;
Memory *g_all = nullptr;

constexpr uint64_t kPage = 4096;  // in whose multiples NCCL takes windows

uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + kPage - 1) / kPage * kPage;
}

void add(Memory *memory)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    memory->next = g_all;
    g_all = memory;
}

// Takes what `is_wanted` says out of the list.
template <class F>
Memory *take(const F &is_wanted)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    Memory *taken = nullptr;
    for (Memory **at = &g_all; *at;) {
        Memory *memory = *at;
        if (!is_wanted(*memory)) {
            at = &memory->next;
            continue;
        }
        *at = memory->next;
        memory->next = taken;
        taken = memory;
    }
    return taken;
}

// ---- registration, in a turn ----------------------------------------------------------------------------------------

// Says success also while NCCL is still at it, and the window is written later: so NCCL is always asked.
ncclResult_t register_window(const Comm &comm, Memory &memory, uint64_t bytes)
{
    const ncclResult_t said = find_calls()->ncclCommWindowRegister(
        comm.handle, memory.pointer, bytes, &memory.window, kSymmetric);
    return said == ncclSuccess ? ncclInProgress : said;
}

// `function` is the one that the outcome is of. Where cards do not reach each other's memory NCCL gives success and no
// window, to all ranks alike.
Outcome enroll(Comm &comm, Memory &memory, const char **function)
{
    const Calls &call = *find_calls();
    const Limit limit = Limit::of(comm.patience_s);
    const uint64_t bytes = whole_pages(memory.bytes);
    if (call.ncclCommWindowRegister) {
        *function = "ncclCommWindowRegister";
        const Outcome outcome = settle(comm, register_window(comm, memory, bytes), limit);
        comm.has_windows.store(memory.window != nullptr);
        if (outcome.ending != Ending::kDone || memory.window) return outcome;
    }
    *function = "ncclCommRegister";
    return settle(comm,
                  call.ncclCommRegister(comm.handle, memory.pointer, bytes, &memory.registration),
                  limit);
}

// Whether NCCL has let go of the memory.
bool deregister(Comm &comm, Memory &memory)
{
    const Calls &call = *find_calls();
    const Limit limit = Limit::of(comm.patience_s);
    Outcome outcome{Ending::kDone};
    if (memory.window)
        outcome = settle(comm, call.ncclCommWindowDeregister(comm.handle, memory.window), limit);
    else if (memory.registration)
        outcome = settle(comm, call.ncclCommDeregister(comm.handle, memory.registration), limit);
    if (outcome.ending == Ending::kFailed)
        warn_at(place_of(comm, "mem_free"), "memory is not deregistered: %s",
                call.ncclGetErrorString(outcome.result));
    if (outcome.ending != Ending::kDone) return false;
    memory.window = nullptr;
    memory.registration = nullptr;
    return true;
}

// NCCL lets go of memory only while no kernel of the communicator is under way.
bool is_idle(const Comm &comm)
{
    if (!comm.has_called) return true;
    const cudaError_t state = cudaStreamQuery(comm.last_stream);
    cudaGetLastError();
    return state == cudaSuccess;
}

ncclResult_t free_pointer(const Memory &memory)
{
    const Calling calling;
    if (!calling.is_allowed()) return ncclSuccess;  // the end of the process frees it
    const RelaxedScope scope(memory.device, "mem_free");
    return scope.status() ? ncclInternalError : find_calls()->ncclMemFree(memory.pointer);
}

// Frees memory that NCCL no longer knows by a communicator.
void free_memory(Memory *memory)
{
    const ncclResult_t result = free_pointer(*memory);
    if (result != ncclSuccess) {
        char text[160];
        snprintf(text, sizeof text, "cuda:%d: ncclMemFree of %" PRIu64 " bytes failed with %d",
                 memory->device->index, memory->bytes, static_cast<int>(result));
        g_host->log(YOKE_LOG_WARN, text);
    }
    close_device(memory->device);
    delete memory;
}

void free_list(Memory *list)
{
    while (Memory *memory = list) {
        list = memory->next;
        free_memory(memory);
    }
}

// The memory keeps the device open, which it may outlive the communicator on.
yoke_status make(const RelaxedScope &scope, Comm &comm, Memory &memory)
{
    if (scope.status()) return scope.status();
    void *opened = nullptr;
    if (const yoke_status status = device_open(comm.device->index, &opened)) return status;
    const Calling calling;
    const ncclResult_t result =
        calling.is_allowed()
            ? find_calls()->ncclMemAlloc(&memory.pointer, whole_pages(memory.bytes))
            : ncclInternalError;
    if (result == ncclSuccess) return YOKE_OK;
    close_device(comm.device);
    return fail_nccl(place_of(comm, "mem_alloc"), nullptr, result, "ncclMemAlloc");
}

// From here on the memory is in the list, so that it goes with the communicator if it cannot be made known.
yoke_status make_known(Comm &comm, Memory *memory)
{
    const Place place = place_of(comm, "mem_alloc");
    const Turn turn(comm, Limit::of(comm.patience_s));
    const bool has_gone = !comm.handle || comm.aborted.load();
    if (!turn.is_given() || has_gone) {
        if (may_call()) free_memory(memory);
        const Ending ending = has_gone ? Ending::kAborted : turn.ending();
        return fail_wait(place, nullptr, {ending}, "an earlier call", nullptr);
    }
    memory->comm = &comm;
    add(memory);
    const char *function = nullptr;
    const Outcome outcome = enroll(comm, *memory, &function);
    if (outcome.ending != Ending::kDone) {
        const std::lock_guard<std::mutex> lock(g_lock);
        memory->is_marked = true;
        comm.has_failed.store(true);
    }
    return fail_wait(place, comm.handle, outcome, function, nullptr);
}

}  // namespace

yoke_status allocate(Comm &comm, uint64_t bytes, void **pointer)
{
    const Place place = place_of(comm, "mem_alloc");
    if (bytes == 0 || bytes > comm.device->total_memory)
        return fail_at(place, bytes ? YOKE_E_OOM : YOKE_E_VALUE,
                       "%" PRIu64 " bytes were asked for, and the device has %" PRIu64, bytes,
                       comm.device->total_memory);
    Memory *memory = new (std::nothrow) Memory{.bytes = bytes, .device = comm.device};
    if (!memory) return fail_at(place, YOKE_E_OOM, "no host memory");
    const RelaxedScope scope(comm.device, "mem_alloc");
    yoke_status status = make(scope, comm, *memory);
    if (status) {
        delete memory;
        return status;
    }
    if (comm.has_marked.load()) free_marked(comm);
    void *const made = memory->pointer;
    status = make_known(comm, memory);
    if (!status) *pointer = made;
    return status;
}

// Marks the memory; returns false where there is none such.
static bool mark(const Comm *comm, const void *pointer, uint64_t bytes, Comm **owner)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    for (Memory *memory = g_all; memory; memory = memory->next) {
        if (memory->pointer != pointer || memory->bytes != bytes || memory->is_marked) continue;
        if (comm && memory->comm && memory->comm != comm) continue;
        memory->is_marked = true;
        *owner = memory->comm;
        if (*owner) retain(**owner);
        return true;
    }
    return false;
}

yoke_status give_back(Comm *comm, void *pointer, uint64_t bytes)
{
    Comm *owner = nullptr;
    if (!mark(comm, pointer, bytes, &owner))
        return fail(YOKE_E_VALUE, 0,
                    "mem_free: nccl: no memory of %" PRIu64 " bytes at %p was given by mem_alloc",
                    bytes, pointer);
    if (!owner) {
        if (may_call())
            free_list(take([&](const Memory &memory) {
                return memory.pointer == pointer && memory.is_marked && !memory.comm;
            }));
        return YOKE_OK;
    }
    owner->has_marked.store(true);
    free_marked(*owner);
    release(*owner);
    return YOKE_OK;
}

// A communicator that was aborted or has failed frees its memory as it goes: until then kernels may be at work on it.
static bool is_ending(const Comm &comm)
{
    return comm.aborted.load() || comm.has_failed.load() || comm.is_in_reaper.load();
}

void free_marked(Comm &comm)
{
    if (is_ending(comm)) return;
    const Turn turn(comm, Limit{.until = Clock::now() + 50ms});
    if (!turn.is_given() || !comm.handle || is_ending(comm)) return;
    const RelaxedScope scope(comm.device, "mem_free");
    if (scope.status() || !is_idle(comm)) return;
    comm.has_marked.store(false);
    Memory *list =
        take([&](const Memory &memory) { return memory.comm == &comm && memory.is_marked; });
    while (Memory *memory = list) {
        list = memory->next;
        if (deregister(comm, *memory))
            free_memory(memory);
        else
            add(memory);
    }
}

// The memory stays in the list, since somebody may give it back meanwhile; it is freed in a turn alone.
static Memory *find_registered(const Comm &comm)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    Memory *memory = g_all;
    while (memory && (memory->comm != &comm || memory->is_refused ||
                      (!memory->window && !memory->registration)))
        memory = memory->next;
    return memory;
}

void deregister_all(Comm &comm)
{
    while (Memory *memory = find_registered(comm)) memory->is_refused = !deregister(comm, *memory);
}

void forget_communicator(Comm &comm)
{
    {
        const std::lock_guard<std::mutex> lock(g_lock);
        for (Memory *memory = g_all; memory; memory = memory->next)
            if (memory->comm == &comm) memory->comm = nullptr;
    }
    if (may_call())
        free_list(take([](const Memory &memory) { return memory.is_marked && !memory.comm; }));
}

}  // namespace yoke::cuda::nccl
