// The runtime calls that the CUDA module makes, linked into a copy of it in place of cudart. See fake.h.
//
// Work is late, as on a GPU: it waits until a synchronisation, a query or chance has it done, in an order that
// respects streams and events and nothing else. What a synchronisation need not wait for may stay undone for ever.
#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tests/fakes/cuda/fake.h"

struct Work {
    std::function<int()> run;  // a CUDA error number
    std::vector<std::shared_ptr<Work>>
        after;                       // what must be done first, of its own stream and others
    std::vector<const void *> uses;  // first bytes of the blocks
    int device = 0;
    bool done = false;
    timespec time{};  // when
};
using WorkRef = std::shared_ptr<Work>;

// What a capture takes down, in an order in which it may be done.
struct CUgraph_st {
    std::vector<std::function<int()>> work;
    std::vector<const void *> uses;
};
struct CUgraphExec_st {
    std::shared_ptr<const CUgraph_st> graph;
};
struct CUstream_st {
    int device;
    bool blocking;  // ordered with the default stream, which is called the legacy one
    WorkRef last;
    std::shared_ptr<CUgraph_st> capture;
};
struct CUevent_st {
    int device;
    bool timed;
    WorkRef recorded;
    std::shared_ptr<CUgraph_st> capture;
};

namespace {

constexpr int kHost = -1;  // the device of pinned memory
constexpr size_t kMostWaiting = 128;

struct Block {
    size_t bytes;
    int device;
};

struct State {
    std::mutex mutex;
    std::map<const char *, Block> blocks;
    std::set<cudaStream_t> streams;
    std::set<cudaEvent_t> events;
    std::map<int, CUstream_st> defaults;  // by device
    std::vector<WorkRef> waiting;         // in the order in which it came
    std::map<int, int> errors;            // of work, by device, until a call tells it
    uint64_t random = 0;

    State()
    {
        const char *seed = getenv("FAKE_CUDA_SEED");
        random = ((seed ? strtoull(seed, nullptr, 10) : 0) + 1) * 0x9e3779b97f4a7c15ull;
    }
    uint64_t chance(uint64_t of)
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return (random >> 11) % of;
    }
};

// Never destroyed: the program may end with work left over.
State &state()
{
    static State *const only = new State;
    return *only;
}

thread_local cudaError_t t_last_error;

cudaError_t end(int error)
{
    if (error) t_last_error = static_cast<cudaError_t>(error);
    return static_cast<cudaError_t>(error);
}

// What the fake driver offers to the other fakes. As the true runtime does, this asks the library that is loaded.
template <class Call>
Call driver(const char *name)
{
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Call>(library ? dlsym(library, name) : nullptr);
}

// The first call leaves fake_enqueue() with the driver, for fakes that are not linked with this runtime.
int current_device()
{
    static const auto ask = [] {
        if (const auto place = driver<fake_enqueue_fn *>("fake_runtime_enqueue"))
            *place = fake_enqueue;
        return driver<decltype(&fake_current_device)>("fake_current_device");
    }();
    return ask ? ask() : -1;
}

void hold(int kind, int change)
{
    static const auto tell = driver<decltype(&fake_hold)>("fake_hold");
    tell(kind, change);
}

// Why a call ends at once, or 0.
int refuse(const char *call)
{
    static const auto ask = driver<decltype(&fake_fault)>("fake_fault");
    const int fault = ask ? ask(call) : cudaErrorInitializationError;
    return fault ? fault : current_device() < 0 ? cudaErrorDeviceUninitialized : 0;
}

#define ENTER()                                                \
    do {                                                       \
        if (const int why = refuse(__func__)) return end(why); \
    } while (0);                                               \
    const std::lock_guard lock(state().mutex)

void complain(const char *call, const char *what)
{
    fprintf(stderr, "fake: %s: %s\n", call, what);
}

// ---- work: all of this with the mutex held ---------------------------------------------------------------------------

bool is_ready(const Work &work)
{
    return std::all_of(work.after.begin(), work.after.end(),
                       [](const WorkRef &w) { return w->done; });
}

void run(const WorkRef &work)
{
    State &all = state();
    std::erase(all.waiting, work);
    const int error = work->run ? work->run() : 0;
    if (error) all.errors.emplace(work->device, error);
    work->done = true;
    clock_gettime(CLOCK_MONOTONIC, &work->time);
    work->run = nullptr;
    work->after.clear();
}

// One piece of work that can be done, of those in `wanted`, or of all. False if there is none.
bool run_one(const std::set<const Work *> *wanted)
{
    std::vector<WorkRef> ready;
    for (const WorkRef &work : state().waiting)
        if ((!wanted || wanted->count(work.get())) && is_ready(*work)) ready.push_back(work);
    if (ready.empty()) return false;
    run(ready[state().chance(ready.size())]);
    return true;
}

std::set<const Work *> needed_for(const WorkRef &target)
{
    std::set<const Work *> found;
    std::vector<const Work *> open{target.get()};
    while (!open.empty()) {
        const Work *work = open.back();
        open.pop_back();
        if (work->done || !found.insert(work).second) continue;
        for (const WorkRef &earlier : work->after) open.push_back(earlier.get());
    }
    return found;
}

void finish(const WorkRef &target)
{
    if (!target || target->done) return;
    const std::set<const Work *> wanted = needed_for(target);
    while (!target->done) {
        if (state().chance(8) == 0) run_one(nullptr);
        if (!target->done) run_one(&wanted);
    }
}

// Whether it is done; if not, time passes.
bool look_at(const WorkRef &target)
{
    if (!target || target->done) return true;
    const std::set<const Work *> wanted = needed_for(target);
    run_one(&wanted);
    return false;
}

cudaError_t take_error(int device)
{
    State &all = state();
    const auto found = all.errors.find(device);
    if (found == all.errors.end()) return cudaSuccess;
    const int error = found->second;
    all.errors.erase(found);
    return end(error);
}

CUstream_st &default_stream(int device)
{
    CUstream_st &stream = state().defaults[device];
    stream.device = device;
    return stream;
}

// A stream serves only while its device's context is current. Null: there is no such stream.
CUstream_st *find_stream(cudaStream_t stream)
{
    const int device = current_device();
    if (!stream || stream == cudaStreamLegacy) return &default_stream(device);
    return state().streams.count(stream) && stream->device == device ? stream : nullptr;
}

// What a capturing stream is given is taken down instead.
WorkRef enqueue(CUstream_st &stream, std::function<int()> work,
                const std::vector<const void *> &uses = {}, const WorkRef &after = nullptr)
{
    State &all = state();
    const auto made = std::make_shared<Work>();
    if (stream.capture) {
        if (work) stream.capture->work.push_back(std::move(work));
        stream.capture->uses.insert(stream.capture->uses.end(), uses.begin(), uses.end());
        return made;
    }
    made->run = std::move(work);
    made->uses = uses;
    made->device = stream.device;
    const auto wait_for = [&](const WorkRef &earlier) {
        if (earlier && !earlier->done) made->after.push_back(earlier);
    };
    wait_for(stream.last);
    wait_for(after);
    const CUstream_st &legacy = default_stream(stream.device);
    if (&stream == &legacy) {
        for (const cudaStream_t other : all.streams)
            if (other->blocking && other->device == stream.device) wait_for(other->last);
    } else if (stream.blocking) {
        wait_for(legacy.last);
    }
    stream.last = made;
    all.waiting.push_back(made);
    if (all.chance(8) == 0) run_one(nullptr);
    while (all.waiting.size() > kMostWaiting) run_one(nullptr);
    return made;
}

// ---- memory ----------------------------------------------------------------------------------------------------------

// The block that a byte lies in; end() if it is none of ours (virtual memory, the host's own).
std::map<const char *, Block>::iterator find_block(const void *place)
{
    auto &blocks = state().blocks;
    auto next = blocks.upper_bound(static_cast<const char *>(place));
    if (next == blocks.begin()) return blocks.end();
    --next;
    return static_cast<const char *>(place) < next->first + next->second.bytes ? next
                                                                               : blocks.end();
}

bool is_in_use(const void *block)
{
    for (const WorkRef &work : state().waiting)
        if (std::count(work->uses.begin(), work->uses.end(), block)) return true;
    return false;
}

// The blocks that words point into.
std::vector<const void *> blocks_of(const void *words, size_t bytes)
{
    std::vector<const void *> found;
    for (size_t at = 0; at + sizeof(void *) <= bytes; at += sizeof(void *)) {
        const void *place = nullptr;
        memcpy(&place, static_cast<const char *>(words) + at, sizeof place);
        const auto block = find_block(place);
        if (block != state().blocks.end()) found.push_back(block->first);
    }
    return found;
}

size_t used_by(int device)
{
    size_t used = 0;
    for (const auto &[place, block] : state().blocks)
        if (block.device == device) used += block.bytes;
    return used;
}

cudaError_t take(void **place, size_t bytes, int device)
{
    if (!bytes || bytes > FAKE_MEMORY - used_by(device)) return end(cudaErrorMemoryAllocation);
    // Of the very size, so that AddressSanitizer sees the first byte behind it touched.
    void *block = nullptr;
    if (posix_memalign(&block, 256, bytes)) return end(cudaErrorMemoryAllocation);
    memset(block, 0xff, bytes);  // NaN
    state().blocks[static_cast<const char *>(block)] = {bytes, device};
    hold(device == kHost ? FAKE_PINNED : FAKE_BLOCKS, 1);
    *place = block;
    return cudaSuccess;
}

cudaError_t give(const char *call, void *place, bool pinned)
{
    auto &blocks = state().blocks;
    const auto found = blocks.find(static_cast<const char *>(place));
    if (found == blocks.end() || (found->second.device == kHost) != pinned)
        return end(cudaErrorInvalidValue);
    if (is_in_use(place)) {
        complain(call, "work that was not waited for uses the block");
        return end(cudaErrorInvalidValue);
    }
    blocks.erase(found);
    free(place);
    hold(pinned ? FAKE_PINNED : FAKE_BLOCKS, -1);
    return cudaSuccess;
}

// Whether [place, place + bytes) lies in one block, if in any; tells the block.
bool is_inside(const void *place, size_t bytes, std::vector<const void *> &uses, int &device)
{
    const auto block = find_block(place);
    if (block == state().blocks.end()) return true;
    uses.push_back(block->first);
    device = block->second.device;
    return static_cast<const char *>(place) + bytes <= block->first + block->second.bytes;
}

}  // namespace

extern "C" {

cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                         void (*drop)(void *), void *context, const void *words, size_t bytes)
{
    const std::shared_ptr<void> kept(context, drop);
    if (const int why = refuse(call)) return end(why);
    const std::lock_guard lock(state().mutex);
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    enqueue(
        *on, [kept, work] { return work(kept.get()); }, blocks_of(words, bytes));
    return cudaSuccess;
}

// ---- errors and devices ----------------------------------------------------------------------------------------------

const char *cudaGetErrorName(cudaError_t error)
{
    static thread_local char text[32];
    snprintf(text, sizeof text, "cudaErrorFake%d", static_cast<int>(error));
    return text;
}

const char *cudaGetErrorString(cudaError_t)
{
    return "a failure that the test asked for";
}

cudaError_t cudaGetLastError()
{
    return std::exchange(t_last_error, cudaSuccess);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *prop, int device)
{
    ENTER();
    if (device != current_device()) return end(cudaErrorInvalidDevice);
    *prop = {};
    snprintf(prop->name, sizeof prop->name, "Fake GPU %d", device);
    memset(prop->uuid.bytes, 0xA0 + device, sizeof prop->uuid.bytes);
    prop->pciDomainID = 0;
    prop->pciBusID = 0x65 + device;
    prop->pciDeviceID = 0;
    prop->totalGlobalMem = FAKE_MEMORY;
    prop->multiProcessorCount = 132;
    prop->major = 9;
    return cudaSuccess;
}

cudaError_t cudaDeviceSynchronize()
{
    ENTER();
    const int device = current_device();
    for (const cudaStream_t stream : state().streams)
        if (stream->capture) return end(cudaErrorStreamCaptureUnsupported);
    for (;;) {
        const auto &waiting = state().waiting;
        const auto found = std::find_if(waiting.begin(), waiting.end(),
                                        [=](const WorkRef &w) { return w->device == device; });
        if (found == waiting.end()) return take_error(device);
        finish(WorkRef(*found));
    }
}

// ---- memory ----------------------------------------------------------------------------------------------------------

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    ENTER();
    *free_bytes = FAKE_MEMORY - used_by(current_device());
    *total = FAKE_MEMORY;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **place, size_t bytes)
{
    ENTER();
    return take(place, bytes, current_device());
}

// The true one waits for the device; the backend's contract promises that nothing is left to wait for.
cudaError_t cudaFree(void *place)
{
    ENTER();
    return give("cudaFree", place, false);
}

cudaError_t cudaHostAlloc(void **place, size_t bytes, unsigned flags)
{
    ENTER();
    return flags == cudaHostAllocPortable ? take(place, bytes, kHost) : end(cudaErrorInvalidValue);
}

cudaError_t cudaFreeHost(void *place)
{
    ENTER();
    return give("cudaFreeHost", place, true);
}

// Pageable memory of the host is read at the call, and written before it returns; pinned memory when its turn comes.
cudaError_t cudaMemcpyAsync(void *dst, const void *src, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    constexpr int kUnknown = -2;
    ENTER();
    if (kind == cudaMemcpyHostToHost) return end(cudaErrorInvalidMemcpyDirection);
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    std::vector<const void *> uses;
    int to = kUnknown, from = kUnknown;
    if (!is_inside(dst, bytes, uses, to) || !is_inside(src, bytes, uses, from)) {
        complain("cudaMemcpyAsync", "the range reaches beyond its block");
        return end(cudaErrorInvalidValue);
    }
    if ((kind == cudaMemcpyHostToDevice && from >= 0) ||
        (kind == cudaMemcpyDeviceToHost && to >= 0))
        return end(cudaErrorInvalidMemcpyDirection);
    std::vector<char> staged;
    if (kind == cudaMemcpyHostToDevice && from == kUnknown && !on->capture)
        staged.assign(static_cast<const char *>(src), static_cast<const char *>(src) + bytes);
    const auto work = [=, staged = std::move(staged)] {
        memmove(dst, staged.empty() ? src : staged.data(), bytes);
        return 0;
    };
    const WorkRef made = enqueue(*on, work, uses);
    if (kind != cudaMemcpyDeviceToHost || to == kHost || on->capture) return cudaSuccess;
    finish(made);
    return take_error(on->device);
}

cudaError_t cudaMemsetAsync(void *dst, int value, size_t bytes, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    std::vector<const void *> uses;
    int device = 0;
    if (!is_inside(dst, bytes, uses, device)) {
        complain("cudaMemsetAsync", "the range reaches beyond its block");
        return end(cudaErrorInvalidValue);
    }
    enqueue(
        *on, [=] { return memset(dst, value, bytes) ? 0 : 1; }, uses);
    return cudaSuccess;
}

// ---- streams ---------------------------------------------------------------------------------------------------------

cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    ENTER();
    *least = 0;
    *greatest = -5;
    return cudaSuccess;
}

cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned flags, int priority)
{
    ENTER();
    if (flags > cudaStreamNonBlocking || priority > 0 || priority < -5)
        return end(cudaErrorInvalidValue);
    *stream = new CUstream_st{current_device(), flags != cudaStreamNonBlocking, {}, {}};
    state().streams.insert(*stream);
    hold(FAKE_STREAMS, 1);
    return cudaSuccess;
}

// What was given to it is still done.
cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    ENTER();
    if (!find_stream(stream) || !state().streams.erase(stream))
        return end(cudaErrorInvalidResourceHandle);
    delete stream;
    hold(FAKE_STREAMS, -1);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on->capture) return end(cudaErrorStreamCaptureUnsupported);
    finish(on->last);
    return take_error(on->device);
}

cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on->capture) return end(cudaErrorStreamCaptureUnsupported);
    return look_at(on->last) ? take_error(on->device) : end(cudaErrorNotReady);
}

// ---- events ----------------------------------------------------------------------------------------------------------

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    ENTER();
    *event = new CUevent_st{current_device(), !(flags & cudaEventDisableTiming), {}, {}};
    state().events.insert(*event);
    hold(FAKE_EVENTS, 1);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    ENTER();
    if (!state().events.erase(event)) return end(cudaErrorInvalidResourceHandle);
    delete event;
    hold(FAKE_EVENTS, -1);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on || !state().events.count(event) || event->device != on->device)
        return end(cudaErrorInvalidResourceHandle);
    event->capture = on->capture;
    event->recorded = on->capture ? nullptr : enqueue(*on, nullptr);
    return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    ENTER();
    if (flags) return end(cudaErrorInvalidValue);
    CUstream_st *const on = find_stream(stream);
    if (!on || !state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) {
        if (on->capture && on->capture != event->capture) return end(cudaErrorStreamCaptureMerge);
        on->capture = event->capture;
        return cudaSuccess;
    }
    if (!event->recorded || event->recorded->done) return cudaSuccess;
    if (on->capture) return end(cudaErrorStreamCaptureIsolation);
    enqueue(*on, nullptr, {}, event->recorded);
    return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    ENTER();
    if (!state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) return end(cudaErrorCapturedEvent);
    return look_at(event->recorded) ? take_error(event->device) : end(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    ENTER();
    if (!state().events.count(event)) return end(cudaErrorInvalidResourceHandle);
    if (event->capture) return end(cudaErrorCapturedEvent);
    finish(event->recorded);
    return take_error(event->device);
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t first, cudaEvent_t last)
{
    ENTER();
    for (const cudaEvent_t event : {first, last})
        if (!state().events.count(event) || !event->timed || !event->recorded)
            return end(cudaErrorInvalidResourceHandle);
    if (!first->recorded->done || !last->recorded->done) return end(cudaErrorNotReady);
    const timespec &from = first->recorded->time, &to = last->recorded->time;
    *milliseconds = static_cast<float>(to.tv_sec - from.tv_sec) * 1e3f +
                    static_cast<float>(to.tv_nsec - from.tv_nsec) * 1e-6f;
    return cudaSuccess;
}

// ---- graphs ----------------------------------------------------------------------------------------------------------

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus *status)
{
    ENTER();
    const CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    *status = on->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    if (on == &default_stream(on->device)) return end(cudaErrorStreamCaptureUnsupported);
    if (on->capture) return end(cudaErrorIllegalState);
    on->capture = std::make_shared<CUgraph_st>();
    return cudaSuccess;
}

// A capture has ended even if the call fails.
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph)
{
    const int fault = refuse(__func__);
    const std::lock_guard lock(state().mutex);
    const CUstream_st *const on = find_stream(stream);
    if (!on || !on->capture) return end(cudaErrorIllegalState);
    const auto captured = on->capture;
    for (const cudaStream_t other : state().streams)
        if (other->capture == captured) other->capture = nullptr;
    for (const cudaEvent_t event : state().events)
        if (event->capture == captured) event->capture = nullptr;
    if (fault) return end(fault);
    *graph = new CUgraph_st(*captured);
    hold(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *made, cudaGraph_t graph, unsigned long long flags)
{
    ENTER();
    if (flags || !graph) return end(cudaErrorInvalidValue);
    *made = new CUgraphExec_st{std::make_shared<const CUgraph_st>(*graph)};
    hold(FAKE_GRAPHS, 1);
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    ENTER();
    delete graph;
    hold(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    ENTER();
    delete graph;
    hold(FAKE_GRAPHS, -1);
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t stream)
{
    ENTER();
    CUstream_st *const on = find_stream(stream);
    if (!on) return end(cudaErrorInvalidResourceHandle);
    for (const void *block : graph->graph->uses)
        if (find_block(block) == state().blocks.end()) {
            complain("cudaGraphLaunch", "memory that the graph uses was freed");
            return end(cudaErrorInvalidValue);
        }
    const auto run_all = [all = graph->graph] {
        for (const auto &work : all->work)
            if (const int error = work()) return error;
        return 0;
    };
    enqueue(*on, run_all, graph->graph->uses);
    return cudaSuccess;
}

}  // extern "C"
