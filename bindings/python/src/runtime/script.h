// script.h: line of the script that makes a call, noted with Python's lock held, and reported without the lock.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// Scope in which the calling thread reports the innermost line outside the package yoke and contextlib. The
// constructor needs the lock; the frames stay unchanged until the call has returned.
class ScriptLine {
public:
    ScriptLine() noexcept;
    ~ScriptLine();
    ScriptLine(const ScriptLine &) = delete;
    ScriptLine &operator=(const ScriptLine &) = delete;
};

// Registers the function that reports the script's line. `file` is a file of the package, whose frames are passed
// over. Returns false with a Python error set on failure.
bool init_script(PyObject *file);

}  // namespace yoke_python
