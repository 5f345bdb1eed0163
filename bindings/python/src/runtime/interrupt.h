// interrupt.h: calls that may wait for long, without Python's lock, and hear its signals all the same: Ctrl-C, and
// whatever else has a handler.
#pragma once

#include "bindings/python/src/runtime/bind.h"

#include <string>

namespace yoke_python {

// While it lives, the library may ask the calling thread's interpreter whether a handler raises. The lock is held where
// it is made, and where it ends; handlers run in Python's main thread alone, so no other is asked.
class Waiting {
public:
    Waiting();
    ~Waiting();
    Waiting(const Waiting &) = delete;
    Waiting &operator=(const Waiting &) = delete;

    // Raises what a handler has raised, else what the call failed with, because of what was kept.
    void check(yoke_status status);

    // Where a function of the script's has failed, which the call runs in its thread, with the lock: keeps what it has
    // raised, which leaves the call as it is where it is no Exception, such as Ctrl-C. Gives "ValueError: its text".
    static std::string keep(const std::exception &error) noexcept;

    // For the library, in its thread and without the lock: whether a handler has raised.
    static int32_t hear(void *user);

private:
    void run_handlers();
    static void remember(const py::error_already_set &error) noexcept;
    void raise_as_cause();

    PyThreadState *const state_;
    Waiting *const outer_;
    PyObject *kind_ = nullptr, *error_ = nullptr, *trace_ = nullptr;  // what it raised
    PyObject *kept_ = nullptr;
};

// A call that may wait.
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

// Does so in a hand-written function: returns false with the Python error set.
template <class Call>
bool waited_in(Call &&call) noexcept
try {
    wait_in(call);
    return true;
} catch (py::error_already_set &error) {
    error.restore();
    return false;
}

// Where nobody can take what Python code has raised: Ctrl-C, and what else is no Exception, comes up in the main
// thread's next step of Python's.
void raise_later(const py::error_already_set &error) noexcept;

// Has the library ask. False with a Python error set on failure.
bool init_interrupts();

}  // namespace yoke_python
