// Types for the files of the fake libnccl: communicators, calls, and the work of a stream for a call.
//
// The model: a call is a kernel on a stream, and so are all calls of a communicator in a group. The kernel begins in
// the stream's order: the kernel reads the input and posts the input to the peers. When the peers have posted their
// inputs, the kernel writes the output and ends. A device runs a single such kernel at a time, in the order of
// launches, across all communicators and streams. So if ranks launch two communicators in different orders, the ranks
// hang, as on a GPU with capacity for a single kernel.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/fakes/cuda/beside_driver.h"
#include "tests/fakes/cuda/nccl_shared.h"

namespace yoke::fake {

enum Kind {
    kAllReduce = 1,
    kReduce,
    kBroadcast,
    kAllGather,
    kReduceScatter,
    kAlltoAll,
    kGather,
    kScatter,
    kSend,
    kRecv,
    kWindow
};

struct Kernel;

// State of a communicator for the kernels. Kernels may outlive the communicator.
struct Member {
    std::unique_ptr<Shared> shared;
    int rank, size, device;
    std::atomic<bool> is_aborted{false};
    std::chrono::steady_clock::time_point end_of_aborted;  // kernels
    std::mutex mutex;
    std::set<const Kernel *> pending;
    uint64_t sequences[kChannels] = {};  // number of the next call in each channel
};

// Call of a collective, a send or a receive.
struct Op {
    Kind kind;
    ncclDataType_t dtype;
    ncclRedOp_t reduction;
    int root;  // for a send or receive, the peer
    size_t count;
    const void *in;
    void *out;
    uint64_t sequence = 0;
};
size_t size_of(ncclDataType_t dtype);
// Return the bytes of own memory that a rank reads and writes.
size_t bytes_in(const Op &op, const Member &member);
size_t bytes_out(const Op &op, const Member &member);

bool has_pending(Member &member);
// Tells whether an unfinished kernel reads or writes some of the memory.
bool is_in_use(Member &member, const void *place, size_t bytes);

// Launches a kernel with a group's calls of a communicator.
ncclResult_t launch(const std::shared_ptr<Member> &member, std::vector<Op> ops, cudaStream_t stream,
                    bool is_stuck);

// Reduces `count` elements of each of `parts`, in their order, each hop rounded to the type. A min and max of floats
// drops NaN. avg divides the sum.
void reduce(const std::vector<const char *> &parts, char *out, size_t count, ncclDataType_t dtype,
            ncclRedOp_t reduction);

// Piece of a call. A step is repeated until there is a result.
using Step = std::function<std::optional<ncclResult_t>()>;

}  // namespace yoke::fake

struct ncclWindow_vidmem {
    void *place;
    size_t bytes;
};

struct ncclComm {
    std::shared_ptr<yoke::fake::Member> member;  // null for a communicator already gone
    bool is_blocking = true, is_finalized = false;
    std::atomic<bool> is_entered{false};     // by a thread, just now
    std::vector<yoke::fake::Step> steps;     // steps of the call in progress
    int polls = 0;                           // polls until the call in progress ends
    ncclResult_t error = ncclSuccess;        // asynchronous
    ncclResult_t later_error = ncclSuccess;  // asynchronous error after the call in progress
    int calls = 0;                           // collectives, sends and receives so far
    std::map<std::string, int> counts;       // calls by name
    std::set<ncclWindow_vidmem *> windows, registered;
};

namespace yoke::fake {

// ---- errors and faults ----------------------------------------------------------------------------------------------

// Reports a problem on stderr and for ncclGetLastError(); returns `result`.
ncclResult_t refuse(ncclResult_t result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
const char *last_error();

// Returns the failure that FAKE_NCCL_FAIL asks of a call. Sleeps, or never returns, if the variable says so.
ncclResult_t fault(const char *call, ncclComm *comm);
// Returns FAKE_NCCL_IN_PROGRESS.
int polls_of_a_call();
// Returns how long kernels go on behind an abort: FAKE_NCCL_ABORT_LATE.
std::chrono::milliseconds lateness_of_abort();
// Tells whether the cards reach each other's memory: FAKE_NCCL_NO_WINDOWS is not set.
bool has_windows();
// is_stuck() returns whether FAKE_NCCL_STUCK holds up a rank's call. async_error() returns the error that
// FAKE_NCCL_ASYNC gives a rank after the call.
bool is_stuck(int rank, int call);
ncclResult_t async_error(int rank, int call);

// Counts resources made (+1) or given back (-1).
enum Held { kComms, kWindowsHeld, kRegistrations, kBlocks, kHeldKinds };
void hold(Held kind, int change);

// ---- communicators --------------------------------------------------------------------------------------------------

ncclComm *make_comm(int rank, int size, int device, bool is_blocking);
// Takes a communicator away from the users; running kernels keep the member.
void let_go(ncclComm *comm);
// Enters a communicator for a call; returns false if another thread is in a call.
bool enter(ncclComm *comm);
void leave(ncclComm *comm);

// Refuses a call in a thread without a device, because NCCL would put a context back on the first device.
ncclResult_t check_context(const char *call);

// Call of a communicator by a thread. `problem` is the reason why the call ends at once, or success.
class Entry {
public:
    enum Needs { kReady, kAny };
    Entry(const char *call, ncclComm *comm, Needs needs = kReady);
    ~Entry();
    Entry(const Entry &) = delete;
    ncclResult_t problem = ncclSuccess;

private:
    ncclComm *entered_ = nullptr;
};

// Does a step of a call at the end of this thread's group, or now if the thread is in no group. A blocking
// communicator waits for the result. A non-blocking communicator gives ncclInProgress until there were enough polls
// and there is a result.
ncclResult_t submit(ncclComm *comm, Step step);
// Submits a call that becomes part of a kernel.
ncclResult_t submit(ncclComm *comm, const Op &op, cudaStream_t stream, bool is_stuck);
// Returns the result of the call in progress, or ncclInProgress.
ncclResult_t poll(ncclComm *comm);
ncclResult_t begin_group();
ncclResult_t end_group();
// Notes a failed call in this thread's group, so the group's end fails, too.
ncclResult_t spoil_group(ncclResult_t result);

// Refuses memory that the device may not use, for a call.
ncclResult_t check_memory(const char *call, int device, const void *place, size_t bytes);

}  // namespace yoke::fake

#define ENTER(...)                            \
    const Entry entry(__func__, __VA_ARGS__); \
    if (entry.problem) return spoil_group(entry.problem)
