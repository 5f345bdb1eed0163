#include "bindings/python/src/runtime/log.h"

#include "bindings/python/src/runtime/error.h"

#include "yoke/runtime.h"

#include <pthread.h>

#include <cstdio>
#include <deque>
#include <mutex>
#include <new>
#include <string>

namespace yoke_python {

std::atomic<bool> log_pending{false};

namespace {

struct Line {
    int32_t level;
    std::string text;
};

// Limit of kept lines, so that the log cannot fill the memory of a host program that never runs Python.
constexpr size_t kMostLines = 1000;

// Never destroyed: the library may speak while the process ends.
struct Queue {
    std::mutex mutex;
    std::deque<Line> lines;
} &queue = *new Queue;

// Repairs the queue in the child of a fork. A thread missing in the child may have held the mutex: the mutex would
// never open, and its lines may be half written. So a new queue replaces both. The fork cannot take the mutex first,
// because of a deadlock with a thread that logs with a lock of the library held.
void mend_after_fork()
{
    if (queue.mutex.try_lock())
        queue.mutex.unlock();
    else
        new (&queue) Queue;
}

bool take(Line *out)
{
    const std::lock_guard lock(queue.mutex);
    if (queue.lines.empty()) {
        log_pending.store(false, std::memory_order_relaxed);
        return false;
    }
    *out = std::move(queue.lines.front());
    queue.lines.pop_front();
    return true;
}

int drain_from_main_thread(void *)
{
    if (drain_log()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_Exception)) return -1;  // Ctrl-C, which the script gets
    PyErr_WriteUnraisable(nullptr);                           // there is no caller here to take it
    return 0;
}

void receive(void *, int32_t level, const char *message)
{
    if (!Py_IsInitialized()) {  // logged while the process ends
        fprintf(stderr, "yoke: %s\n", message);
        return;
    }
    bool first = false;
    try {
        const std::lock_guard lock(queue.mutex);
        first = queue.lines.empty();
        if (queue.lines.size() < kMostLines) queue.lines.push_back({level, message});
    } catch (...) {  // no memory for a log line: it is lost, the caller goes on
        return;
    }
    log_pending.store(true, std::memory_order_relaxed);
    if (first) Py_AddPendingCall(drain_from_main_thread, nullptr);
}

bool emit(const Line &line)
{
    PyObject *module = PyImport_ImportModule("yoke._log");
    PyObject *done = module ? PyObject_CallMethod(module, "emit", "is",
                                                  static_cast<int>(line.level), line.text.c_str())
                            : nullptr;
    Py_XDECREF(module);
    Py_XDECREF(done);
    return done != nullptr;
}

}  // namespace

bool drain_log()
{
    // A failed call keeps its own exception; the lines come with the next call.
    if (PyErr_Occurred()) return true;
    Line line;
    while (take(&line))
        if (!emit(line)) return false;
    return true;
}

bool init_log()
{
    static const int guarded = pthread_atfork(nullptr, nullptr, mend_after_fork);
    static int64_t id = 0;  // once per process, even if a host program starts Python anew
    if (guarded) return PyErr_NoMemory() != nullptr;
    return id || yoke_log_add_callback(receive, nullptr, nullptr, &id) == YOKE_OK ||
           raise_last_error() != nullptr;
}

}  // namespace yoke_python
