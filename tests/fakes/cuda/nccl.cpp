// A libnccl for tests: communicators of threads and processes of one machine. What NCCL would refuse, or would answer
// with a hang or wrong memory, is refused with a line on stderr. See fake.h and nccl_fake.h.
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "tests/fakes/cuda/machine.h"
#include "tests/fakes/cuda/nccl_fake.h"

namespace yoke::fake {
namespace {

#ifdef YOKE_FAKE_NCCL_OLD
constexpr int kVersion = NCCL_VERSION(2, 19, 0);
constexpr size_t kConfigBytes = offsetof(ncclConfig_t, splitShare) + 8;
#else
constexpr int kVersion = NCCL_VERSION_CODE;
constexpr size_t kConfigBytes = sizeof(ncclConfig_t);
#endif
constexpr int kOldestVersion = NCCL_VERSION(2, 19, 0);
constexpr size_t kLeastConfigBytes = offsetof(ncclConfig_t, splitShare) + 8;
constexpr unsigned kMagic = 0xcafebeef;

int version()
{
    const char *const setting = getenv("FAKE_NCCL_VERSION");
    return setting ? atoi(setting) : kVersion;
}

// Communicators, both live and gone. An address is not used again, so a call on a communicator already gone is
// noticed.
struct Comms {
    std::mutex mutex;
    std::set<const ncclComm *> all;
};
Comms &comms()
{
    static Comms *const only = new Comms;
    return *only;
}

bool is_one_of(int value, std::initializer_list<int> values)
{
    for (const int one : values)
        if (value == one) return true;
    return false;
}

ncclResult_t check_config(const ncclConfig_t *config)
{
    if (!config) return ncclSuccess;
    if (config->magic != kMagic)
        return refuse(ncclInvalidArgument, "the config has the magic number %x, not %x",
                      config->magic, kMagic);
    if (config->size < kLeastConfigBytes || config->size > kConfigBytes || config->size % 8)
        return refuse(ncclInvalidArgument, "the config has %zu bytes, not %zu to %zu", config->size,
                      kLeastConfigBytes, kConfigBytes);
    const int told = static_cast<int>(config->version);
    if (told < kOldestVersion || told > kVersion)
        return refuse(ncclInvalidArgument, "the config is of version %d, not of %d to %d", told,
                      kOldestVersion, kVersion);
    if (!is_one_of(config->blocking, {NCCL_CONFIG_UNDEF_INT, 0, 1}) ||
        !is_one_of(config->splitShare, {NCCL_CONFIG_UNDEF_INT, 0, 1}))
        return refuse(ncclInvalidArgument, "the config's blocking is %d and its splitShare %d",
                      config->blocking, config->splitShare);
    return ncclSuccess;
}

// Takes this rank's seat.
ncclResult_t join(const Member &member, int size)
{
    Board &board = member.shared->board();
    int known = 0;
    if (!board.size.compare_exchange_strong(known, size) && known != size)
        return refuse(ncclInvalidUsage, "rank %d comes with %d ranks, another with %d", member.rank,
                      size, known);
    static const auto ask = driver_symbol<decltype(&fake_machine_device)>("fake_machine_device");
    fake_device device{};
    if (!ask || ask(member.device, &device))
        return refuse(ncclUnhandledCudaError, "there is no device %d", member.device);
    Rank &mine = board.ranks[member.rank];
    if (mine.has_joined) return refuse(ncclInvalidUsage, "two ranks have number %d", member.rank);
    memcpy(mine.uuid, device.uuid, sizeof mine.uuid);
    mine.has_joined = 1;
    return ncclSuccess;
}

bool have_all_joined(const Member &member)
{
    for (int rank = 0; rank < member.size; ++rank)
        if (!member.shared->board().ranks[rank].has_joined) return false;
    return true;
}

ncclResult_t check_devices(const Member &member)
{
    const Rank *const ranks = member.shared->board().ranks;
    for (int one = 0; one < member.size; ++one)
        for (int other = 0; other < one; ++other)
            if (!memcmp(ranks[one].uuid, ranks[other].uuid, sizeof ranks[one].uuid))
                return refuse(
                    ncclInvalidUsage,
                    "Duplicate GPU detected: rank %d and rank %d both on CUDA device %02x", other,
                    one, ranks[one].uuid[0]);
    return ncclSuccess;
}

// Makes a communicator with the other ranks. The result is empty until all ranks have come.
std::optional<ncclResult_t> come_together(Member &member, const ncclUniqueId &id, int size)
{
    if (!member.shared) {
        member.shared = Shared::open(id, member.rank);
        if (!member.shared)
            return refuse(ncclSystemError, "the process that made the unique id has gone");
        if (const ncclResult_t wrong = join(member, size)) return wrong;
    }
    if (!have_all_joined(member)) return std::nullopt;
    member.shared->release_id();
    return check_devices(member);
}

void drop_windows(ncclComm *comm)
{
    hold(kWindowsHeld, -static_cast<int>(comm->windows.size()));
    hold(kRegistrations, -static_cast<int>(comm->registered.size()));
    for (const auto *held : {&comm->windows, &comm->registered})
        for (const ncclWindow_vidmem *window : *held) delete window;
    comm->windows.clear();
    comm->registered.clear();
}

}  // namespace

ncclComm *make_comm(int rank, int size, int device, bool is_blocking)
{
    auto *const made = new ncclComm;
    made->member = std::make_shared<Member>();
    made->member->rank = rank;
    made->member->size = size;
    made->member->device = device;
    made->is_blocking = is_blocking;
    const std::lock_guard lock(comms().mutex);
    comms().all.insert(made);
    hold(kComms, 1);
    return made;
}

void let_go(ncclComm *comm)
{
    comm->steps.clear();
    hold(kComms, -1);
    const std::lock_guard lock(comms().mutex);
    comm->member = nullptr;
}

bool enter(ncclComm *comm)
{
    return !comm->is_entered.exchange(true);
}

void leave(ncclComm *comm)
{
    comm->is_entered = false;
}

ncclResult_t check_context(const char *call)
{
    return current_device() >= 0
               ? ncclSuccess
               : refuse(ncclUnhandledCudaError,
                        "%s: no device is current, and the runtime would make one of the first",
                        call);
}

Entry::Entry(const char *call, ncclComm *comm, Needs needs)
{
    {
        const std::lock_guard lock(comms().mutex);
        if (!comms().all.count(comm))
            problem = refuse(ncclInvalidArgument, "%s: %p is no communicator", call,
                             static_cast<void *>(comm));
        else if (!comm->member)
            problem = refuse(ncclInvalidArgument,
                             "%s: the communicator was destroyed or aborted before", call);
        else if (!enter(comm))
            problem = refuse(ncclInvalidUsage,
                             "%s: another thread is in a call of the communicator", call);
        else
            entered_ = comm;
    }
    if (problem || (problem = fault(call, comm)) || (problem = check_context(call)) ||
        needs == kAny)
        return;
    if (!comm->steps.empty())
        problem = refuse(
            ncclInvalidArgument,
            "%s: the communicator's last call is in progress; ask ncclCommGetAsyncError() until it is done",
            call);
    else if (comm->error)
        problem = refuse(comm->error, "%s: the communicator has failed", call);
}

Entry::~Entry()
{
    if (entered_) leave(entered_);
}

}  // namespace yoke::fake

using namespace yoke::fake;

ncclResult_t ncclGetVersion(int *told)
{
    if (const ncclResult_t asked = fault(__func__, nullptr)) return asked;
    *told = version();
    return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
    if (const ncclResult_t asked = fault(__func__, nullptr)) return asked;
    return Shared::make(*id) ? ncclSuccess
                             : refuse(ncclSystemError, "no shared memory can be made");
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config)
{
    *out = nullptr;
    if (const ncclResult_t wrong = check_config(config)) return spoil_group(wrong);
    if (size < 1 || size > kMostRanks || rank < 0 || rank >= size)
        return spoil_group(refuse(ncclInvalidArgument, "rank %d of %d ranks", rank, size));
    const int device = current_device();
    if (device < 0 || !runtime().enqueue_late)
        return spoil_group(refuse(ncclUnhandledCudaError, "no device is current"));
    ncclComm *const made = make_comm(rank, size, device, !config || config->blocking != 0);
    enter(made);
    ncclResult_t result = fault(__func__, made);
    if (!result)
        result = submit(
            made, [member = made->member, id, size] { return come_together(*member, id, size); });
    leave(made);
    if (result && result != ncclInProgress) {
        let_go(made);
        return spoil_group(result);
    }
    *out = made;
    return result;
}

ncclResult_t ncclCommFinalize(ncclComm_t comm)
{
    ENTER(comm);
    if (comm->is_finalized) return refuse(ncclInvalidArgument, "a communicator is finalized twice");
    comm->is_finalized = true;
    return submit(comm, [member = comm->member]() -> std::optional<ncclResult_t> {
        if (has_pending(*member)) return std::nullopt;
        return ncclSuccess;
    });
}

ncclResult_t ncclCommDestroy(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    ENTER(comm);
    if (!comm->windows.empty() || !comm->registered.empty())
        return refuse(ncclInvalidUsage,
                      "a communicator with %zu windows and %zu registrations is destroyed",
                      comm->windows.size(), comm->registered.size());
    while (has_pending(*comm->member)) std::this_thread::sleep_for(std::chrono::microseconds(100));
    let_go(comm);
    return ncclSuccess;
}

// Ends the kernels of this rank. The peers' kernels wait for this rank until the peers abort too.
ncclResult_t ncclCommAbort(ncclComm_t comm)
{
    if (!comm) return ncclSuccess;
    ENTER(comm, Entry::kAny);
    comm->member->end_of_aborted = std::chrono::steady_clock::now() + lateness_of_abort();
    comm->member->is_aborted = true;
    if (comm->member->shared) comm->member->shared->release_id();
    drop_windows(comm);
    let_go(comm);
    runtime().advance();
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *error)
{
    ENTER(comm, Entry::kAny);
    *error = poll(comm);
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result)
{
    constexpr const char *kTexts[ncclNumResults] = {
        "no error",         "a CUDA call failed", "a system call failed", "an internal error",
        "invalid argument", "invalid usage",      "a remote error",       "in progress"};
    return result < 0 || result >= ncclNumResults ? "an unknown result" : kTexts[result];
}

const char *ncclGetLastError(ncclComm_t)
{
    return last_error();
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *count)
{
    ENTER(comm);
    *count = comm->member->size;
    return ncclSuccess;
}

ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int *device)
{
    ENTER(comm);
    *device = comm->member->device;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank)
{
    ENTER(comm);
    *rank = comm->member->rank;
    return ncclSuccess;
}
