// call.h: frame around a call into the library. Before the call the modes of the running context come into force;
// during the call other threads of Python run, and Python code may free memory.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "yoke/types.h"

#include <atomic>
#include <utility>

namespace yoke_python {

// Number of Modes objects, plus threads with a mode in force; values/modes.h describes them.
extern std::atomic<int> modes_count;
void sync_modes_now();
// Puts the modes of the running context in force in this thread.
inline void sync_modes()
{
    if (modes_count.load(std::memory_order_relaxed)) [[unlikely]]
        sync_modes_now();
}

// Scope in which other Python threads run, if `wanted`.
class ReleaseGil {
public:
    explicit ReleaseGil(bool wanted = true) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
    // Takes the GIL back. While the interpreter ends, CPython takes a daemon thread away here, by unwinding its
    // stack.
    ~ReleaseGil() noexcept(false)
    {
        if (state_) PyEval_RestoreThread(state_);
    }
    ReleaseGil(const ReleaseGil &) = delete;
    ReleaseGil &operator=(const ReleaseGil &) = delete;

private:
    PyThreadState *state_;
};

// Mark on the calls of this thread in its scope: they hold their arguments. If a device has no memory left, Python
// code runs only within such calls (runtime/relief.h), because the code may close any tensor.
class Relieved {
public:
    Relieved() { ++calls_; }
    ~Relieved() { --calls_; }
    Relieved(const Relieved &) = delete;
    Relieved &operator=(const Relieved &) = delete;

    // Returns how many marks stand in this thread, and puts another number in their place.
    static int exchange(int calls) { return std::exchange(calls_, calls); }
    static bool is_marked() { return calls_ != 0; }

private:
    static inline constinit thread_local int calls_ = 0;
};

// Runs a call marked as Relieved, and returns its status.
template <class Call>
yoke_status with_relief(Call call)
{
    const Relieved relieved;
    return call();
}

}  // namespace yoke_python
