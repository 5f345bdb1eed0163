// Late work begins in the stream's order and ends when its peers have come. A GPU goes on with such work whatever the
// program's threads do. So a thread does the work here, as long as late work is left. See fake.h.
#include <dlfcn.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>

#include "tests/fakes/cuda/runtime.h"

namespace yoke::fake {
namespace {

using std::chrono::microseconds;

// Pauses of the thread: after some work was done, while all work hangs, and before the thread ends.
constexpr microseconds kTick(200), kSlow(1000), kIdle(50000);

// Thread that goes on with late work. A forked child has no such thread. The child gets a new `wake`, because the old
// `wake` may be in use.
struct Thread {
    bool is_running = false;
    std::condition_variable_any *wake = new std::condition_variable_any;
};
Thread &thread()
{
    static Thread *const only = new Thread;
    return *only;
}

std::vector<WorkRef> pending()
{
    std::vector<WorkRef> found;
    for (const WorkRef &work : state().waiting)
        if (work->late.is_over) found.push_back(work);
    return found;
}

// Does pending work and its dependencies. Returns whether any work was done.
bool advance()
{
    for (bool any = false;; any = true) {
        const std::set<const Work *> wanted = needed_for(pending());
        if (!run_one(&wanted)) return any;
    }
}

// Goes on until there was no work for a while. Then the thread ends, so a program's count of threads has no extra
// thread.
void go_on()
{
    std::unique_lock lock(state().mutex);
    for (microseconds pause = kTick;;) {
        pause = advance() ? kTick : std::min(pause + kTick / 10, kSlow);
        const bool is_idle = pending().empty();
        const auto status = thread().wake->wait_for(lock, is_idle ? kIdle : pause);
        if (is_idle && status == std::cv_status::timeout && pending().empty()) break;
    }
    thread().is_running = false;
}

// Keeps the library with the thread's code loaded, because the thread may outlive the library's last user.
void pin()
{
    Dl_info info{};
    if (dladdr(reinterpret_cast<const void *>(&go_on), &info) && info.dli_fname)
        dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void lock_state()
{
    state().mutex.lock();
}

void unlock_state()
{
    state().mutex.unlock();
}

// Drops the late work in a forked child, because the parent's GPU does this work.
void begin_child()
{
    thread().is_running = false;
    thread().wake = new std::condition_variable_any;
    for (const WorkRef &work : pending()) {
        work->done = true;
        std::erase(state().waiting, work);
    }
    state().mutex.unlock();
}

void keep_going()
{
    static const bool is_set_up = [] {
        pin();
        return pthread_atfork(lock_state, unlock_state, begin_child) == 0;
    }();
    if (!is_set_up) complain("enqueue_late", "no handler can be set up for forks");
    if (std::exchange(thread().is_running, true))
        thread().wake->notify_one();
    else
        std::thread(go_on).detach();
}

CUstream_st *stream_of(int device, cudaStream_t stream)
{
    if (!stream || stream == cudaStreamLegacy) return &default_stream(device);
    return state().streams.count(stream) && stream->device == device ? stream : nullptr;
}

}  // namespace

void pause_unlocked()
{
    state().mutex.unlock();
    std::this_thread::sleep_for(kTick / 2);
    state().mutex.lock();
}

void advance_late()
{
    const std::lock_guard lock(state().mutex);
    advance();
}

int is_captured(int device, cudaStream_t stream)
{
    const std::lock_guard lock(state().mutex);
    const CUstream_st *const on = stream_of(device, stream);
    return on ? on->capture != nullptr : -1;
}

cudaError_t enqueue_late(int device, cudaStream_t stream, const fake_late *work, void *context,
                         const void *words, size_t bytes)
{
    const std::shared_ptr<void> kept(context, work->drop);
    if (const int lost = lose(device, 0)) return static_cast<cudaError_t>(lost);
    const std::lock_guard lock(state().mutex);
    CUstream_st *const on = stream_of(device, stream);
    if (const cudaError_t problem = problem_of(on)) return problem;
    if (on->capture) return cudaErrorStreamCaptureUnsupported;
    const Late late{[kept, is_over = work->is_over] { return is_over(kept.get()) != 0; },
                    [kept, end = work->end] { return end(kept.get()); }};
    WorkRef &last = state().last_late[device];
    last = enqueue(
        *on, [kept, begin = work->begin] { return begin(kept.get()); }, blocks_of(words, bytes),
        WorkRef(last), late);
    keep_going();
    return cudaSuccess;
}

}  // namespace yoke::fake
