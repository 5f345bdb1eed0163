// Memory of the fake libnccl: allocations, registrations and windows. See nccl_fake.h.
#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {
namespace {

#ifndef YOKE_FAKE_NCCL_OLD

// Waits for the other ranks' registrations of a window. All sizes must be equal.
std::optional<ncclResult_t> meet(Member &member, size_t bytes, uint64_t sequence, bool &is_posted)
{
    if (!std::exchange(is_posted, true))
        member.shared->post(kWindows, {kWindow, 0, 0, 0, bytes, 0, 0, 0}, nullptr);
    for (int rank = 0; rank < member.size; ++rank)
        if (!member.shared->has(rank, kWindows, sequence)) return std::nullopt;
    for (int rank = 0; rank < member.size; ++rank) {
        const uint64_t theirs = member.shared->read(rank, kWindows, sequence).count;
        if (theirs != bytes)
            return refuse(ncclInvalidUsage, "a window of %zu bytes, on rank %d of %llu", bytes,
                          rank, static_cast<unsigned long long>(theirs));
    }
    return ncclSuccess;
}

#endif

// Takes back a window or a registration of the communicator.
ncclResult_t drop(const char *call, ncclComm *comm, std::set<ncclWindow_vidmem *> &held, Held kind,
                  ncclWindow_vidmem *window)
{
    if (!held.count(window))
        return refuse(ncclInvalidArgument, "%s: %p is none of the communicator's", call,
                      static_cast<void *>(window));
    if (is_in_use(*comm->member, window->place, window->bytes))
        return refuse(ncclInvalidUsage, "%s: a kernel is under way that uses it", call);
    held.erase(window);
    delete window;
    hold(kind, -1);
    return ncclSuccess;
}

}  // namespace
}  // namespace yoke::fake

using namespace yoke::fake;

ncclResult_t ncclMemAlloc(void **place, size_t bytes)
{
    if (const ncclResult_t asked = fault(__func__, nullptr)) return asked;
    const int device = current_device();
    if (device < 0 || !runtime().allocate)
        return refuse(ncclUnhandledCudaError, "ncclMemAlloc: no device is current");
    if (runtime().unsafe()) return refuse(ncclUnhandledCudaError, "ncclMemAlloc: in a capture");
    if (runtime().allocate(device, place, bytes))
        return refuse(ncclUnhandledCudaError, "ncclMemAlloc: out of memory, no %zu bytes are left",
                      bytes);
    hold(kBlocks, 1);
    return ncclSuccess;
}

ncclResult_t ncclMemFree(void *place)
{
    if (const ncclResult_t asked = fault(__func__, nullptr)) return asked;
    if (!place) return ncclSuccess;
    if (!runtime().release || runtime().release(place))
        return refuse(ncclInvalidUsage, "ncclMemFree: %p is no block of ncclMemAlloc(), or in use",
                      place);
    hold(kBlocks, -1);
    return ncclSuccess;
}

ncclResult_t ncclCommRegister(const ncclComm_t comm, void *place, size_t bytes, void **handle)
{
    ENTER(comm);
    if (const ncclResult_t wrong = check_memory(__func__, comm->member->device, place, bytes))
        return wrong;
    auto *const made = new ncclWindow_vidmem{place, bytes};
    comm->registered.insert(made);
    hold(kRegistrations, 1);
    *handle = made;
    return ncclSuccess;
}

ncclResult_t ncclCommDeregister(const ncclComm_t comm, void *handle)
{
    ENTER(comm);
    return drop(__func__, comm, comm->registered, kRegistrations,
                static_cast<ncclWindow_vidmem *>(handle));
}

#ifndef YOKE_FAKE_NCCL_OLD

ncclResult_t ncclCommWindowRegister(ncclComm_t comm, void *place, size_t bytes,
                                    ncclWindow_t *window, int flags)
{
    ENTER(comm);
    *window = nullptr;
    if (flags != NCCL_WIN_DEFAULT && flags != NCCL_WIN_COLL_SYMMETRIC)
        return spoil_group(refuse(ncclInvalidArgument, "%s: flags of %d", __func__, flags));
    if (reinterpret_cast<uintptr_t>(place) % NCCL_WIN_REQUIRED_ALIGNMENT)
        return spoil_group(refuse(ncclInvalidArgument, "%s: %p is not aligned to %d bytes",
                                  __func__, place, NCCL_WIN_REQUIRED_ALIGNMENT));
    if (const ncclResult_t wrong = check_memory(__func__, comm->member->device, place, bytes))
        return spoil_group(wrong);
    if (!has_windows()) return ncclSuccess;
    const uint64_t sequence = comm->member->sequences[kWindows]++;
    const ncclResult_t result = submit(comm, [=, is_posted = false]() mutable {
        const auto met = meet(*comm->member, bytes, sequence, is_posted);
        if (!met || *met) return met;
        *window = new ncclWindow_vidmem{place, bytes};
        comm->windows.insert(*window);
        hold(kWindowsHeld, 1);
        return met;
    });
    // A non-blocking communicator returns success, and writes the window when all ranks have come.
    return result == ncclInProgress ? ncclSuccess : result;
}

ncclResult_t ncclCommWindowDeregister(ncclComm_t comm, ncclWindow_t window)
{
    ENTER(comm);
    return drop(__func__, comm, comm->windows, kWindowsHeld, window);
}

#endif
