// What the files of the fake runtime share: work that waits, streams, memory. See fake.h.
//
// Work is late, as on a GPU: it waits until a synchronisation, a query or chance has it done, in an order that
// respects streams and events and nothing else. What a synchronisation need not wait for may stay undone for ever.
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

// End of work that waits for something from outside, such as a kernel of NCCL's.
struct Late {
    std::function<bool()> is_over;  // asked again and again; null for work that ends as it is run
    std::function<int()> end;       // once; a CUDA error number
};
struct Work {
    std::function<int()> run;  // a CUDA error number
    Late late;
    bool has_begun = false;  // late work
    std::vector<std::shared_ptr<Work>>
        after;                       // what must be done first, of its own stream and others
    std::vector<const void *> uses;  // first bytes of the blocks
    int device = 0;
    bool done = false;
    timespec time{};  // when
};
using WorkRef = std::shared_ptr<Work>;

// How far streams of a capture have come, as far as one of them, or an event, knows.
using Reached = std::map<const CUstream_st *, uint64_t>;

// What a capture takes down, in an order in which it may be done.
struct CUgraph_st {
    std::vector<std::function<int()>> work;
    std::vector<const void *> uses;
    bool spoiled = false;  // its capture, by a call that a capture forbids
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    std::thread::id thread{};  // that began it
    const CUstream_st *origin = nullptr;
};
struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph;
};
struct CUstream_st {
    int device;
    bool blocking;  // ordered with the default stream, which is called the legacy one
    WorkRef last;
    std::shared_ptr<CUgraph_st> capture;
    Reached reached;  // of its capture
};
struct CUevent_st {
    int device;
    bool timed;
    WorkRef recorded;
    std::shared_ptr<CUgraph_st> capture;
    Reached reached;  // of its capture
};

namespace yoke::fake {

constexpr int kHost = -1;  // the device of pinned memory
constexpr size_t kMostWaiting = 128;

struct Block {
    size_t bytes;
    int device;
    bool of_library = false;  // which alone may free it, and takes whole pages
};

struct State {
    std::mutex mutex;
    std::map<const char *, Block> blocks;
    std::set<cudaStream_t> streams;
    std::set<cudaEvent_t> events;
    std::map<int, CUstream_st> defaults;  // by device
    std::vector<WorkRef> waiting;         // in the order in which it came
    std::map<int, WorkRef> last_late;     // by device
    std::set<std::pair<int, int>> peers;  // (device, another whose memory it may reach)
    uint64_t seed = 0, random = 0x9e3779b97f4a7c15ull;  // that the seed was begun with
    uint64_t ticks = 0;                                 // of the clock of FAKE_CUDA_TICKS
    bool idle = true;  // was waited for, and nothing was done since

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
// What the driver knows of a device.
fake_device describe(int device);
// Something was made (+1) or given back (-1).
void hold(int kind, int change);
// The failure that a test asked of this call, or 0.
int fault_of(const char *call);
// Loses a device to an error, or asks with 0: what it is lost to.
int lose(int device, int error);
// Why a call that needs a context ends at once, or 0.
int refuse(const char *call);
// What the fake driver may still give of a device: whole pages.
size_t left_for_chunks(int device);
// A line on stderr about what CUDA would punish later.
void complain(const char *call, const char *what);

#define ENTER()                                                \
    do {                                                       \
        if (const int why = refuse(__func__)) return end(why); \
    } while (0);                                               \
    const std::lock_guard lock(state().mutex)

// The same for calls that CUDA calls potentially unsafe.
#define ENTER_UNSAFE() \
    ENTER();           \
    if (const cudaError_t why = break_captures()) return end(why)

// ---- with the mutex held --------------------------------------------------------------------------------------------

// Does one piece of work that can be done, of those in `wanted`, or of all. False if there is none.
bool run_one(const std::set<const Work *> *wanted);
// Returns what is not done of `targets` and of all that must be done before them.
std::set<const Work *> needed_for(const std::vector<WorkRef> &targets);
// Lets other threads have the mutex for a moment. What the caller has found in State may be gone then.
void pause_unlocked();
// Does work until `target` is done; null is done. Where that takes late work which cannot end, other threads go on.
void finish(WorkRef target);
// The same for one who waits, and then finds nothing going on.
void wait_for(WorkRef target);
// Whether it is done; if not, time passes.
bool look_at(const WorkRef &target);
// By what a device is lost, at every call.
cudaError_t take_error(int device);

CUstream_st &default_stream(int device);
// A stream serves only while its device's context is current. Null: there is no such stream.
CUstream_st *find_stream(cudaStream_t stream);
// Why a stream can be given nothing, or success: there is none, or its capture is spoiled.
cudaError_t problem_of(const CUstream_st *stream);
// A call that may not be made while `capture` goes on, or of what it has taken down: it fails with `error`, and so does
// all that the capture is given from then on, its end too.
cudaError_t spoil(const std::shared_ptr<CUgraph_st> &capture, cudaError_t error);
// To wait for a device is to wait for all its streams, those too that are being captured. Whether there are any.
bool spoil_captures_of(int device);
// An unsafe call of this thread costs the captures that forbid it: those of this thread that are not relaxed, and those
// of any in the global mode; unless the thread is relaxed itself, or sees to captures of its own alone.
cudaError_t break_captures();
// A stream becomes part of a capture, or waits for what of it an event knows.
void join(CUstream_st &stream, const std::shared_ptr<CUgraph_st> &capture, const Reached &reached);
// Whether the stream in which a capture began knows all that the others came to.
bool is_joined(const std::shared_ptr<CUgraph_st> &capture);
cudaStreamCaptureMode exchange_mode(cudaStreamCaptureMode mode);
// What a capturing stream is given is taken down instead.
WorkRef enqueue(CUstream_st &stream, std::function<int()> work,
                const std::vector<const void *> &uses = {}, const WorkRef &after = nullptr,
                Late late = {});
// Returns the blocks that words point into.
std::vector<const void *> blocks_of(const void *words, size_t bytes);

// ---- for libraries: struct fake_runtime ----------------------------------------------------------------------------

cudaError_t enqueue_late(int device, cudaStream_t stream, const fake_late *work, void *context,
                         const void *words, size_t bytes);
void advance_late();
int is_captured(int device, cudaStream_t stream);
int find_memory(const void *place, size_t *left);
cudaError_t give_to_library(int device, void **place, size_t bytes);
cudaError_t take_from_library(void *place);

// The block that a byte lies in; end() if it is none of ours (virtual memory, the host's own).
std::map<const char *, Block>::iterator find_block(const void *place);

}  // namespace yoke::fake
