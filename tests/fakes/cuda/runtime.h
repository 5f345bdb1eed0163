// Declarations for the files of the fake runtime: waiting work, streams, memory. See fake.h.
//
// Work is late, as on a GPU. A synchronisation, a query or chance does the work, in an order that respects only
// streams and events. If no synchronisation needs a piece of work, the piece may stay undone for ever.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/machine.h"

// End of work that waits for an outside event, such as a kernel of NCCL's.
struct Late {
    std::function<bool()> is_over;  // asked repeatedly; null for work without a late end
    std::function<int()> end;       // once; a CUDA error number
};
struct Work {
    std::function<int()> run;  // a CUDA error number
    Late late;
    bool has_begun = false;                    // late work
    std::vector<std::shared_ptr<Work>> after;  // work to be done first, in any stream
    std::vector<const void *> uses;            // first bytes of the blocks
    int device = 0;
    bool done = false;
    timespec time{};  // when
};
using WorkRef = std::shared_ptr<Work>;

// Progress of a capture's streams, as far as a stream or an event knows.
using Reached = std::map<const CUstream_st *, uint64_t>;

// Work recorded by a capture, in a possible order of execution.
struct CUgraph_st {
    std::vector<std::function<int()>> work;
    std::vector<const void *> uses;
    bool spoiled = false;  // by a call forbidden in captures
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    std::thread::id thread{};  // the capture's first thread
    const CUstream_st *origin = nullptr;
};
struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph;
};
struct CUstream_st {
    int device;
    bool blocking;  // ordered with the legacy default stream
    WorkRef last;
    std::shared_ptr<CUgraph_st> capture;
    Reached reached;  // progress of the capture
};
struct CUevent_st {
    int device;
    bool timed;
    WorkRef recorded;
    std::shared_ptr<CUgraph_st> capture;
    Reached reached;  // progress of the capture
};

namespace yoke::fake {

constexpr int kHost = -1;  // the device of pinned memory
constexpr size_t kMostWaiting = 128;

struct Block {
    size_t bytes;
    int device;
    bool of_library = false;  // only the library may free the block; whole pages
};

struct State {
    std::mutex mutex;
    std::map<const char *, Block> blocks;
    std::set<cudaStream_t> streams;
    std::set<cudaEvent_t> events;
    std::map<int, CUstream_st> defaults;  // by device
    std::vector<WorkRef> waiting;         // in the order of the calls
    std::map<int, WorkRef> last_late;     // by device
    std::set<std::pair<int, int>> peers;  // (device, another device with reachable memory)
    uint64_t seed = 0, random = 0x9e3779b97f4a7c15ull;  // the seed of `random`
    uint64_t ticks = 0;                                 // the clock of FAKE_CUDA_TICKS
    bool idle = true;                                   // no work since the last wait

    uint64_t chance(uint64_t of)
    {
        const char *named = getenv("FAKE_CUDA_SEED");
        const uint64_t wanted = named ? strtoull(named, nullptr, 10) : 0;
        if (std::exchange(seed, wanted) != wanted) random = (wanted + 1) * 0x9e3779b97f4a7c15ull;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (random >> 11) % of;
    }
};
State &state();

// Notes a failure for cudaGetLastError().
cudaError_t end(int error);
cudaError_t last_error();
int current_device();
// Returns the driver's data on a device.
fake_device describe(int device);
// Counts a resource that was made (+1) or given back (-1).
void hold(int kind, int change);
// Returns this call's failure as ordered by a test, or 0.
int fault_of(const char *call);
// Loses a device to an error, unless the error is 0. Returns the error to which the device was lost.
int lose(int device, int error);
// Returns why a call with a context ends at once, or 0.
int refuse(const char *call);
// Returns a device's memory still free for the fake driver, in whole pages.
size_t left_for_chunks(int device);
// Writes a line on stderr about a mistake that CUDA would punish later.
void complain(const char *call, const char *what);

#define ENTER()                                                \
    do {                                                       \
        if (const int why = refuse(__func__)) return end(why); \
    } while (0);                                               \
    const std::lock_guard lock(state().mutex)

// Ends a call as ENTER does, and if a capture forbids calls called potentially unsafe by CUDA.
#define ENTER_UNSAFE() \
    ENTER();           \
    if (const cudaError_t why = break_captures()) return end(why)

// ---- with the mutex held --------------------------------------------------------------------------------------------

// Does a piece of work that can be done, from `wanted`, or from all work. Returns false if there is no such piece.
bool run_one(const std::set<const Work *> *wanted);
// Returns the undone work of `targets` and of all dependencies.
std::set<const Work *> needed_for(const std::vector<WorkRef> &targets);
// Lets other threads have the mutex for a moment. What the caller has found in State may be gone then.
void pause_unlocked();
// Does work until `target` is done; null is done. If late work that cannot end yet is needed, other threads go on.
void finish(WorkRef target);
// Does work until `target` is done, for a waiting caller. The device is idle then.
void wait_for(WorkRef target);
// Tells whether the target is done; if not, time passes.
bool look_at(const WorkRef &target);
// Returns the error of a lost device, at every call.
cudaError_t take_error(int device);

CUstream_st &default_stream(int device);
// Finds a stream of the current context's device. Null: there is no such stream.
CUstream_st *find_stream(cudaStream_t stream);
// Returns why a stream can be given no work, or success. Reasons: the stream does not exist, or its capture is
// spoiled.
cudaError_t problem_of(const CUstream_st *stream);
// Fails a call forbidden during `capture`, or forbidden on work recorded by `capture`. The call fails with `error`.
// All later calls on the capture fail, too, including the end.
cudaError_t spoil(const std::shared_ptr<CUgraph_st> &capture, cudaError_t error);
// Spoils the captures of a device. A wait for a device waits for all its streams, including captured streams. Returns
// whether there were captures.
bool spoil_captures_of(int device);
// Spoils captures at an unsafe call of this thread: the thread's own captures, unless relaxed, and all captures in
// the global mode. A thread in relaxed mode spoils no capture. A thread in thread-local mode spoils only own
// captures.
cudaError_t break_captures();
// Makes a stream part of a capture, or makes the stream wait for the part of the capture known to an event.
void join(CUstream_st &stream, const std::shared_ptr<CUgraph_st> &capture, const Reached &reached);
// Tells whether the capture's first stream knows the progress of all other streams.
bool is_joined(const std::shared_ptr<CUgraph_st> &capture);
cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode);
// Gives a stream work. If the stream is being captured, the capture records the work instead.
WorkRef enqueue(CUstream_st &stream, std::function<int()> work,
                const std::vector<const void *> &uses = {}, const WorkRef &after = nullptr,
                Late late = {});
// Returns the blocks for pointers among the words.
std::vector<const void *> blocks_of(const void *words, size_t bytes);

// ---- for libraries: struct fake_runtime -----------------------------------------------------------------------------

cudaError_t enqueue_late(int device, cudaStream_t stream, const fake_late *work, void *context,
                         const void *words, size_t bytes);
void advance_late();
int is_captured(int device, cudaStream_t stream);
int find_memory(const void *place, size_t *left);
cudaError_t give_to_library(int device, void **place, size_t bytes);
cudaError_t take_from_library(void *place);

// Returns the block with a byte; end() if the byte lies in other memory (virtual memory, the host program's own).
std::map<const char *, Block>::iterator find_block(const void *place);

}  // namespace yoke::fake
