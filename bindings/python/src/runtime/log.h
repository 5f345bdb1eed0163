// log.h: passes the library's log to Python's warnings and logging.
//
// A line may come from any thread, with or without the GIL. The line goes into a queue, and to yoke._log.emit at the
// next safe point: after the call that logged, or, if no call of Python runs, between two instructions of the main
// thread. No thread waits for the GIL to log.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>

namespace yoke_python {

extern std::atomic<bool> log_pending;

// Returns whether drain_log has lines to pass on; costs a load.
inline bool log_waits()
{
    return log_pending.load(std::memory_order_relaxed);
}

// Hands over the waiting lines. Returns false with a Python error set if a warning was turned into an error.
bool drain_log();

bool init_log();

}  // namespace yoke_python
