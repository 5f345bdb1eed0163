// script.h: the line of the script that makes a call, noted while Python's lock is held, and told without it.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// While it lives, the calling thread tells the innermost line outside of the package yoke and of contextlib. The lock
// is held where it is made; the frames stay where they are until the call has returned.
class ScriptLine {
public:
    ScriptLine() noexcept;
    ~ScriptLine();
    ScriptLine(const ScriptLine &) = delete;
    ScriptLine &operator=(const ScriptLine &) = delete;
};

// `file` is one of the package's. False with a Python error set on failure.
bool init_script(PyObject *file);

}  // namespace yoke_python
