#include <cinttypes>
#include <new>
#include <utility>

#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/aside.h"
#include "kernels/cuda/host/nccl/failure.h"
#include "kernels/cuda/host/nccl/library.h"
#include "kernels/cuda/host/nccl/memory.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda::nccl {

namespace {

constexpr uint64_t kPage = 4096;  // in whose multiples NCCL takes windows

uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + kPage - 1) / kPage * kPage;
}

// Call for memory of all ranks. It has the turn of the communicator while NCCL makes the memory known to peers.
class Lending final : public Aside {
public:
    Lending(Comm &comm, Memory *memory)
        : Aside(comm.device, "mem_alloc"), comm_(comm), memory_(memory)
    {
        retain(comm_);
    }
    const Memory &memory() const { return *memory_; }

private:
    ~Lending() override { release(comm_); }
    Outcome run() override;
    void take_back() override;
    Outcome make();
    Outcome make_known();
    Outcome enroll();
    ncclResult_t register_window(uint64_t bytes);

    Comm &comm_;
    Memory *memory_;  // null once it is freed
    const Limit limit_ = Limit::of(comm_.patience_s);
};

Outcome Lending::make()
{
    const ncclResult_t said = in("ncclMemAlloc", [this] {
        return find_calls()->ncclMemAlloc(&memory_->pointer, whole_pages(memory_->bytes));
    });
    if (said == ncclSuccess) return {Ending::kDone};
    close_device(memory_->device);
    delete std::exchange(memory_, nullptr);
    return {Ending::kFailed, said};
}

// Registers the memory as a window. In place of success returns ncclInProgress, so the caller asks NCCL in any case:
// NCCL returns success while it is still at work, and writes the window later.
ncclResult_t Lending::register_window(uint64_t bytes)
{
    const ncclResult_t said = in("ncclCommWindowRegister", [&] {
        return find_calls()->ncclCommWindowRegister(comm_.handle, memory_->pointer, bytes,
                                                    &memory_->window, kSymmetric);
    });
    return said == ncclSuccess ? ncclInProgress : said;
}

// Registers the memory as a window, or as a buffer if there is no window. If cards do not reach each other's memory,
// NCCL returns success and no window, to all ranks alike.
Outcome Lending::enroll()
{
    const uint64_t bytes = whole_pages(memory_->bytes);
    if (find_calls()->ncclCommWindowRegister) {
        const Outcome outcome = settle(comm_, register_window(bytes), limit_);
        comm_.has_windows.store(memory_->window != nullptr);
        if (outcome.ending != Ending::kDone || memory_->window) return outcome;
    }
    const ncclResult_t said = in("ncclCommRegister", [&] {
        return find_calls()->ncclCommRegister(comm_.handle, memory_->pointer, bytes,
                                              &memory_->registration);
    });
    return settle(comm_, said, limit_);
}

// Registers the memory with NCCL, in a Turn. Without the turn, frees the memory and fails. Before the registration
// the memory goes into the list, so if the registration fails, the memory is freed with the communicator.
Outcome Lending::make_known()
{
    note("an earlier call");
    const Turn turn(comm_, limit_);
    const bool has_gone = !comm_.handle || comm_.aborted.load();
    if (!turn.is_given() || has_gone) {
        comm_.has_failed.store(true);
        if (may_call()) free_memory(std::exchange(memory_, nullptr));
        return {has_gone ? Ending::kAborted : turn.ending()};
    }
    memory_->comm = &comm_;
    add(memory_);
    const Outcome outcome = enroll();
    if (outcome.ending == Ending::kDone) return outcome;
    comm_.has_failed.store(true);
    mark(*std::exchange(memory_, nullptr));
    return outcome;
}

Outcome Lending::run()
{
    const Outcome outcome = make();
    return outcome.ending == Ending::kDone ? make_known() : outcome;
}

// Releases the memory. If its communicator still exists, the memory is freed with the communicator.
void Lending::take_back()
{
    if (!memory_) return;
    mark(*memory_);
    free_orphans();
}

}  // namespace

yoke_status allocate(Comm &comm, uint64_t bytes, void **pointer, yoke_comm_fault *fault)
{
    const Place place = place_of(comm, "mem_alloc");
    if (bytes == 0 || bytes > comm.device->total_memory)
        return fail_at(place, bytes ? YOKE_E_OOM : YOKE_E_VALUE,
                       "%" PRIu64 " bytes were requested; the device has %" PRIu64, bytes,
                       comm.device->total_memory);
    void *opened = nullptr;  // the memory keeps the device open, where it outlives the communicator
    if (const yoke_status status = device_open(comm.device->index, &opened)) return status;
    if (comm.freeing.has_marked.load()) free_marked(comm, kToFree);
    auto *memory = new (std::nothrow) Memory{.bytes = bytes, .device = comm.device};
    const auto lending = memory ? start_aside<Lending>(comm, memory) : nullptr;
    if (!lending) {
        delete memory;
        close_device(comm.device);
        return fail_at(place, YOKE_E_OOM,
                       "the system has no thread or memory for a call of NCCL; check ulimit -u");
    }
    const Outcome outcome = lending->wait(Limit::of(comm.patience_s), &comm);
    if (outcome.ending == Ending::kDone) {
        *pointer = lending->memory().pointer;
        return YOKE_OK;
    }
    if (lending->is_left()) comm.has_failed.store(true);
    const RelaxedScope scope(comm.device, "mem_alloc");
    return fail_wait(place, nullptr, outcome, lending->function(), fault);
}

}  // namespace yoke::cuda::nccl
