// log.h: what the library has to say reaches Python's warnings and logging.
//
// A line may come from any thread, with or without the GIL. It is put in a queue, and handed to
// yoke._log.emit at the next safe point: after the call that caused it, or, where no call of Python
// is under way, between two instructions of the main thread. No thread waits for the GIL for it.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <atomic>

namespace yoke_python {

extern std::atomic<bool> log_pending;

// Whether drain_log has anything to do; costs one load.
inline bool log_waits()
{
    return log_pending.load(std::memory_order_relaxed);
}

// Hands over what waits. False with a Python error set where a warning was turned into an error.
bool drain_log();

bool init_log();

}  // namespace yoke_python
