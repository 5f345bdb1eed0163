#include "interrupt.h"

#include "yoke/runtime.h"

#include <atomic>
#include <utility>

#include <pthread.h>

namespace yoke_python {

namespace {

thread_local Waiting *waiting = nullptr;

// Whose signals Python handles, as it says itself; 0: not known yet, and any thread asks. Python code, such as
// threading's, would run a handler that is due.
std::atomic<unsigned long> main_thread{0};

int note_main_thread(void *)
{
    main_thread = PyThread_get_thread_ident();
    return 0;
}

// A forked child's only thread is its main one.
void note_after_fork()
{
    note_main_thread(nullptr);
}

bool is_other_thread()
{
    const unsigned long known = main_thread;
    return known && known != PyThread_get_thread_ident();
}

}  // namespace

Waiting::Waiting() : state_(PyThreadState_Get()), outer_(std::exchange(waiting, this)) {}

Waiting::~Waiting()
{
    waiting = outer_;
    Py_XDECREF(kind_);
    Py_XDECREF(error_);
    Py_XDECREF(trace_);
}

void Waiting::check(yoke_status status)
{
    if (kind_) {
        PyErr_Restore(std::exchange(kind_, nullptr), std::exchange(error_, nullptr),
                      std::exchange(trace_, nullptr));
        throw py::error_already_set();
    }
    yoke_python::check(status);
}

// What is raised waits for the end of the call, which may run other code of Python's before.
void Waiting::run_handlers()
{
    PyEval_RestoreThread(state_);
    if (PyErr_CheckSignals() != 0) PyErr_Fetch(&kind_, &error_, &trace_);
    PyEval_SaveThread();
}

int32_t Waiting::hear(void *)
{
    Waiting *const here = waiting;
    if (!here || is_other_thread()) return 0;
    if (!here->kind_) here->run_handlers();
    return here->kind_ != nullptr;
}

bool init_interrupts()
{
    static const int guarded = pthread_atfork(nullptr, nullptr, note_after_fork);
    if (guarded) return PyErr_NoMemory() != nullptr;
    main_thread = 0;  // a host may have started Python anew, in another thread
    Py_AddPendingCall(note_main_thread, nullptr);  // which the main thread makes; never, if full
    return yoke_set_interrupt_hook(Waiting::hear, nullptr, nullptr) == YOKE_OK ||
           raise_last_error() != nullptr;
}

}  // namespace yoke_python
