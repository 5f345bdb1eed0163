#include "kernels/cuda/host/nccl/memory.h"

#include <cinttypes>
#include <new>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/aside.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

namespace {

std::mutex g_lock;
Memory *g_all = nullptr;

// Takes memory for which is_wanted() is true out of the list. Returns it as a list of its own.
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

// ---- deregistration -----------------------------------------------------------------------------------------------

ncclResult_t deregister_window(Comm &comm, ncclWindow_t window)
{
    const Inside inside(comm.turn.in, "ncclCommWindowDeregister");
    return find_calls()->ncclCommWindowDeregister(comm.handle, window);
}

ncclResult_t deregister_buffer(Comm &comm, void *registration)
{
    const Inside inside(comm.turn.in, "ncclCommDeregister");
    return find_calls()->ncclCommDeregister(comm.handle, registration);
}

// Makes NCCL release the memory; called in a Turn. Returns whether NCCL has done so. A failure of NCCL is logged.
bool deregister(Comm &comm, Memory &memory)
{
    const Limit limit = Limit::of(comm.patience_s);
    Outcome outcome{Ending::kDone};
    if (memory.window)
        outcome = settle(comm, deregister_window(comm, memory.window), limit);
    else if (memory.registration)
        outcome = settle(comm, deregister_buffer(comm, memory.registration), limit);
    if (outcome.ending == Ending::kFailed)
        warn_at(place_of(comm, "mem_free"), "memory is not deregistered: %s",
                find_calls()->ncclGetErrorString(outcome.result));
    if (outcome.ending != Ending::kDone) return false;
    memory.window = nullptr;
    memory.registration = nullptr;
    return true;
}

// Returns whether the stream of the last call is idle. NCCL releases memory only while no kernel of the communicator
// runs.
bool is_idle(const Comm &comm)
{
    if (!comm.last.has_called) return true;
    const cudaError_t state = cudaStreamQuery(comm.last.stream);
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

void free_list(Memory *list)
{
    while (Memory *memory = list) {
        list = memory->next;
        free_memory(memory);
    }
}

// ---- freeing --------------------------------------------------------------------------------------------------------

// Returns whether the communicator is ending. An aborted or failed communicator frees its memory at its end, because
// kernels may use the memory until then.
bool is_ending(const Comm &comm)
{
    return comm.aborted.load() || comm.has_failed.load() || comm.is_in_reaper.load();
}

// Deregisters marked memory of the communicator and returns it as a list. Memory that NCCL does not release stays in
// the list of all. Returns null without a turn, during work, and if the communicator is ending.
Memory *take_marked(Comm &comm)
{
    const Turn turn(comm, Limit{.until = Clock::now() + kToFree});
    if (!turn.is_given() || !comm.handle || is_ending(comm) || !is_idle(comm)) return nullptr;
    comm.freeing.has_marked.store(false);
    Memory *list =
        take([&](const Memory &memory) { return memory.comm == &comm && memory.is_marked; });
    Memory *done = nullptr;
    while (Memory *memory = list) {
        list = memory->next;
        if (!deregister(comm, *memory)) {
            add(memory);
            continue;
        }
        memory->next = done;
        done = memory;
    }
    return done;
}

Freeing g_orphans;  // memory whose communicator has gone

// Call that frees marked memory of a communicator, or of all ended communicators.
class Freer final : public Aside {
public:
    explicit Freer(Comm *comm) : Aside(comm ? comm->device : nullptr, "mem_free"), comm_(comm)
    {
        if (comm_) retain(*comm_);
    }
    static Freeing &of(Comm *comm) { return comm ? comm->freeing : g_orphans; }

private:
    ~Freer() override
    {
        if (comm_) release(*comm_);
    }
    Outcome run() override;

    Comm *const comm_;
};

// Frees marked memory, and begins again if another thread has asked meanwhile.
Outcome Freer::run()
{
    Freeing &freeing = of(comm_);
    int asked = 0;
    do {
        asked = freeing.asked.load();
        if (comm_)
            free_list(take_marked(*comm_));
        else
            free_orphans();
    } while (!freeing.asked.compare_exchange_strong(asked, 0));
    return {Ending::kDone};
}

// Frees marked memory in a separate thread, and waits at most `patience` for it. If such a thread is active, makes it
// look again and does not wait.
void free_aside(Comm *comm, Clock::duration patience)
{
    Freeing &freeing = Freer::of(comm);
    if (freeing.asked.fetch_add(1)) return;
    if (const auto freer = start_aside<Freer>(comm))
        freer->wait(Limit{.until = Clock::now() + patience});
    else
        freeing.asked.store(0);
}

}  // namespace

void add(Memory *memory)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    memory->next = g_all;
    g_all = memory;
}

void mark(Memory &memory)
{
    const std::lock_guard<std::mutex> lock(g_lock);
    memory.is_marked = true;
}

// Frees memory that NCCL no longer knows by a communicator. A failure is logged.
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

void free_orphans()
{
    if (may_call())
        free_list(take([](const Memory &memory) { return memory.is_marked && !memory.comm; }));
}

// Marks memory as given back. Retains its communicator in *owner, null if the communicator has ended. Returns false
// if there is no such memory.
static bool mark_given(const Comm *comm, const void *pointer, uint64_t bytes, Comm **owner)
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
    if (!mark_given(comm, pointer, bytes, &owner))
        return fail(YOKE_E_VALUE, 0,
                    "mem_free: nccl: mem_alloc did not return memory of %" PRIu64 " bytes at %p",
                    bytes, pointer);
    if (!owner) {
        free_aside(nullptr, kToFree);
        return YOKE_OK;
    }
    owner->freeing.has_marked.store(true);
    free_marked(*owner, kToFree);
    release(*owner);
    return YOKE_OK;
}

void free_marked(Comm &comm, Clock::duration patience)
{
    if (is_ending(comm)) return;
    {
        const RelaxedScope scope(comm.device, "mem_free");
        if (scope.status() || !is_idle(comm)) return;
    }
    free_aside(&comm, patience);
}

// Finds registered memory of a communicator, or returns null. The memory stays in the list, because a caller may free
// it meanwhile. It is freed in a turn only.
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
    free_orphans();
}

}  // namespace yoke::cuda::nccl
