// interrupt.h: long waits without Python's lock that still run handlers of signals: Ctrl-C, and any other handled
// signal.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include <string>

namespace yoke_python {

// Scope in which the library may ask the calling thread's interpreter whether a handler raises. The lock is held
// where the scope begins and ends. Handlers run in Python's main thread alone, so no other thread is asked.
class Waiting {
public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

    // Raises the error of a handler, else the error of the call, with the kept error as its cause.
    void check(yoke_status status);

    // Way in which a kept error leaves the call: as the cause of the call's own error, or in its place.
    enum Leaves { kAsCause, kRaised };
    // Keeps the error of a script's function that failed within the call, in the call's thread and with the lock. An
    // error other than an Exception, such as Ctrl-C, leaves the call unchanged. Returns "ValueError: its text".
    static std::string keep(const std::exception &error, Leaves leaves = kAsCause) noexcept;

    // Runs due handlers, and returns whether a handler has raised. The library calls this in its waiting thread,
    // without the lock.
    static int32_t hear(void *user);

private:
    void run_handlers();
    static void remember(const py::error_already_set &error, Leaves leaves) noexcept;
    void raise_as_cause();

    PyThreadState *const state_;
    Waiting *const outer_;
    PyObject *kind_ = nullptr, *error_ = nullptr, *trace_ = nullptr;  // error of a handler
    PyObject *kept_ = nullptr;
    Leaves leaves_ = kAsCause;
};

// Runs a call that may wait, without the lock; handlers of signals run meanwhile. Throws the error of a handler, else
// the error of the call.
template <class Call>
void wait_in(Call &&call)
{
    Waiting waiting;
    yoke_status status = YOKE_OK;
    {
        const ReleaseGil release;
        status = call();
    }
    waiting.check(status);
}

// Runs a call as wait_in() does, for a hand-written function: returns false with the Python error set.
template <class Call>
bool waited_in(Call &&call) noexcept
try {
    wait_in(call);
    return true;
} catch (py::error_already_set &error) {
    error.restore();
    return false;
}

// Keeps an error of Python code where it cannot be raised: Ctrl-C, or any other error outside Exception, is raised in
// the main thread's next Python step.
void raise_later(const py::error_already_set &error) noexcept;

// Makes the library call Waiting::hear during long waits. Returns false with a Python error set on failure.
bool init_interrupts();

}  // namespace yoke_python
