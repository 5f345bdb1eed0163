// Work waiting in streams, and the order of execution.
#include <dlfcn.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>

#include "tests/fakes/cuda/runtime.h"

namespace yoke::fake {

// Never destroyed: the program may end with work left over.
State &state()
{
    static State *const only = new State;
    return *only;
}

static thread_local cudaError_t t_last_error;

cudaError_t end(int error)
{
    if (error) t_last_error = static_cast<cudaError_t>(error);
    return static_cast<cudaError_t>(error);
}

// Returns and clears the last error. The error of a lost device stays.
cudaError_t last_error()
{
    const cudaError_t last = std::exchange(t_last_error, cudaSuccess);
    const int lost = lose(current_device(), 0);
    return lost ? static_cast<cudaError_t>(lost) : last;
}

// Finds a function that the fake driver offers to the other fakes. Like CUDA's runtime, this function asks the loaded
// library.
template <class Call>
static Call driver(const char *name)
{
    static void *const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Call>(library ? dlsym(library, name) : nullptr);
}

static cudaError_t enqueue_for_library(const char *call, cudaStream_t stream, int (*work)(void *),
                                       void (*drop)(void *), void *context, const void *words,
                                       size_t bytes);

static int wait_for_library();
static int break_captures_for_library();
static void spend(int microseconds);

// The first call leaves a table of this runtime's functions with the driver. Fakes not linked with this runtime use
// the table.
int current_device()
{
    static const auto ask = [] {
        if (const auto place = driver<fake_runtime *>("fake_runtime_calls"))
            *place = {enqueue_for_library,
                      wait_for_library,
                      break_captures_for_library,
                      spend,
                      left_for_chunks,
                      enqueue_late,
                      advance_late,
                      is_captured,
                      find_memory,
                      give_to_library,
                      take_from_library};
        return driver<decltype(&fake_current_device)>("fake_current_device");
    }();
    return ask ? ask() : -1;
}

fake_device describe(int device)
{
    static const auto ask = driver<decltype(&fake_machine_device)>("fake_machine_device");
    fake_device found{};
    if (ask(device, &found)) complain("describe", "there is no such device");
    return found;
}

void hold(int kind, int change)
{
    static const auto tell = driver<decltype(&fake_hold)>("fake_hold");
    tell(kind, change);
}

int lose(int device, int error)
{
    static const auto tell = driver<decltype(&fake_lose)>("fake_lose");
    return tell ? tell(device, error) : 0;
}

int fault_of(const char *call)
{
    static const auto ask = driver<decltype(&fake_fault)>("fake_fault");
    return ask ? ask(call) : cudaErrorInitializationError;
}

int refuse(const char *call)
{
    if (const int fault = fault_of(call)) return fault;
    const int device = current_device();
    return device < 0 ? cudaErrorDeviceUninitialized : lose(device, 0);
}

void complain(const char *call, const char *what)
{
    fprintf(stderr, "fake: %s: %s\n", call, what);
}

// ---- work: all of this with the mutex held --------------------------------------------------------------------------

static bool is_ready(const Work &work)
{
    if (work.has_begun) return work.late.is_over() || lose(work.device, 0);
    return std::all_of(work.after.begin(), work.after.end(),
                       [](const WorkRef &w) { return w->done; });
}

static void tell_time(timespec &now)
{
    const char *ticks = getenv("FAKE_CUDA_TICKS");
    if (!ticks || strcmp(ticks, "1") != 0) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        return;
    }
    const uint64_t microseconds = ++state().ticks;
    now = {static_cast<time_t>(microseconds / 1000000),
           static_cast<long>(microseconds % 1000000 * 1000)};
}

// Runs work. Every error of a kernel or a copy is fatal; on a lost device no work is done.
static void do_work(const Work &work)
{
    if (!work.run || lose(work.device, 0)) return;
    const char *latency = getenv("FAKE_CUDA_LATENCY");
    if (std::exchange(state().idle, false) && latency)
        state().ticks += state().chance(strtoull(latency, nullptr, 10) + 1);
    const char *asked = getenv("FAKE_CUDA_WORK_FAIL");
    lose(work.device, asked ? atoi(asked) : work.run());
}

static void run(const WorkRef &work)
{
    if (work->late.is_over && !std::exchange(work->has_begun, true)) {
        do_work(*work);
        work->run = std::move(work->late.end);
        return;
    }
    std::erase(state().waiting, work);
    do_work(*work);
    work->done = true;
    tell_time(work->time);
    work->run = nullptr;
    work->late = {};
    work->after.clear();
}

bool run_one(const std::set<const Work *> *wanted)
{
    std::vector<WorkRef> ready;
    for (const WorkRef &work : state().waiting)
        if ((!wanted || wanted->count(work.get())) && is_ready(*work)) ready.push_back(work);
    if (ready.empty()) return false;
    run(ready[state().chance(ready.size())]);
    return true;
}

std::set<const Work *> needed_for(const std::vector<WorkRef> &targets)
{
    std::set<const Work *> found;
    std::vector<const Work *> open;
    for (const WorkRef &target : targets) open.push_back(target.get());
    while (!open.empty()) {
        const Work *work = open.back();
        open.pop_back();
        if (work->done || !found.insert(work).second) continue;
        for (const WorkRef &earlier : work->after) open.push_back(earlier.get());
    }
    return found;
}

void finish(WorkRef target)
{
    if (!target || target->done) return;
    std::set<const Work *> wanted = needed_for({target});
    while (!target->done) {
        if (state().chance(8) == 0) run_one(nullptr);
        while (!target->done && !run_one(&wanted)) {
            pause_unlocked();
            wanted = needed_for({target});
        }
    }
}

void wait_for(WorkRef target)
{
    finish(std::move(target));
    state().idle = true;
}

bool look_at(const WorkRef &target)
{
    if (!target || target->done) return true;
    const std::set<const Work *> wanted = needed_for({target});
    run_one(&wanted);
    return false;
}

cudaError_t take_error(int device)
{
    return end(lose(device, 0));
}

CUstream_st &default_stream(int device)
{
    CUstream_st &stream = state().defaults[device];
    stream.device = device;
    return stream;
}

CUstream_st *find_stream(cudaStream_t stream)
{
    const int device = current_device();
    if (!stream || stream == cudaStreamLegacy) return &default_stream(device);
    return state().streams.count(stream) && stream->device == device ? stream : nullptr;
}

cudaError_t problem_of(const CUstream_st *stream)
{
    if (!stream) return cudaErrorInvalidResourceHandle;
    const bool spoiled = stream->capture && stream->capture->spoiled;
    return spoiled ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
}

WorkRef enqueue(CUstream_st &stream, std::function<int()> work,
                const std::vector<const void *> &uses, const WorkRef &after, Late late)
{
    State &all = state();
    const auto made = std::make_shared<Work>();
    if (stream.capture) {
        ++stream.reached[&stream];
        if (work) stream.capture->work.push_back(std::move(work));
        stream.capture->uses.insert(stream.capture->uses.end(), uses.begin(), uses.end());
        return made;
    }
    made->run = std::move(work);
    made->late = std::move(late);
    made->uses = uses;
    made->device = stream.device;
    const auto await = [&](const WorkRef &earlier) {
        if (earlier && !earlier->done) made->after.push_back(earlier);
    };
    await(stream.last);
    await(after);
    const CUstream_st &legacy = default_stream(stream.device);
    if (&stream == &legacy) {
        for (const cudaStream_t other : all.streams)
            if (other->blocking && other->device == stream.device) await(other->last);
    } else if (stream.blocking) {
        await(legacy.last);
    }
    stream.last = made;
    all.waiting.push_back(made);
    if (all.chance(8) == 0) run_one(nullptr);
    while (all.waiting.size() > kMostWaiting && run_one(nullptr)) {
    }
    return made;
}

std::map<const char *, Block>::iterator find_block(const void *place)
{
    auto &blocks = state().blocks;
    auto next = blocks.upper_bound(static_cast<const char *>(place));
    if (next == blocks.begin()) return blocks.end();
    --next;
    return static_cast<const char *>(place) < next->first + next->second.bytes ? next
                                                                               : blocks.end();
}

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

static int start(const char *call, cudaStream_t stream, int (*work)(void *), void (*drop)(void *),
                 void *context, const void *words, size_t bytes)
{
    const std::shared_ptr<void> kept(context, drop);
    if (const int why = refuse(call)) return why;
    if (fake_note(call)) work = [](void *) { return 0; };
    const std::lock_guard lock(state().mutex);
    CUstream_st *const on = find_stream(stream);
    if (const cudaError_t problem = problem_of(on)) return problem;
    enqueue(
        *on, [kept, work] { return work(kept.get()); }, blocks_of(words, bytes));
    return cudaSuccess;
}

static int wait_for_library()
{
    const std::lock_guard lock(state().mutex);
    return spoil_captures_of(current_device()) ? cudaErrorStreamCaptureUnsupported : 0;
}

static int break_captures_for_library()
{
    const std::lock_guard lock(state().mutex);
    return break_captures();
}

// Advances the clock. The work itself calls this, with the mutex held.
static void spend(int microseconds)
{
    state().ticks += static_cast<uint64_t>(microseconds);
}

// Tells whether the process must be ended and restarted after an error, according to the runtime's reference.
static bool is_sticky(int error)
{
    constexpr int kSticky[] = {cudaErrorECCUncorrectable,
                               cudaErrorNvlinkUncorrectable,
                               cudaErrorIllegalAddress,
                               cudaErrorLaunchTimeout,
                               cudaErrorAssert,
                               cudaErrorHardwareStackError,
                               cudaErrorIllegalInstruction,
                               cudaErrorMisalignedAddress,
                               cudaErrorInvalidAddressSpace,
                               cudaErrorInvalidPc,
                               cudaErrorLaunchFailure};
    return std::find(std::begin(kSticky), std::end(kSticky), error) != std::end(kSticky);
}

static cudaError_t enqueue_for_library(const char *call, cudaStream_t stream, int (*work)(void *),
                                       void (*drop)(void *), void *context, const void *words,
                                       size_t bytes)
{
    const int error = start(call, stream, work, drop, context, words, bytes);
    if (is_sticky(error)) lose(current_device(), error);
    return static_cast<cudaError_t>(error);
}

}  // namespace yoke::fake

using namespace yoke::fake;

extern "C" cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                                    void (*drop)(void *), void *context, const void *words,
                                    size_t bytes)
{
    const char *left = getenv("FAKE_CUDA_PENDING");
    const int error = start(call, stream, work, drop, context, words, bytes);
    return end(error || !left ? error : atoi(left));
}
