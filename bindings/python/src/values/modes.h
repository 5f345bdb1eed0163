// modes.h: what `with` blocks put in force: grad mode, autocast, the current device and streams.
//
// C knows these for each thread, Python for each context (contextvars): tasks of one thread have their own, and
// hand them to the tasks that they make. yoke/_modes.py keeps the blocks of a context and says what they come to,
// as a Modes object in a context variable. Whatever calls into C where they count says sync_modes() first, which
// puts those of the running context in force in this thread, and what the thread had before where it has none.
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

// What was set by a call inside a block, set_device and its like, ends with the block. False where no block of
// this context sets a thing of that kind, "grad", "device" or "stream" of that device: it is the thread's then.
bool override_mode(const char *kind, const py::object &value, yoke_device *device = nullptr);

// What __enter__ and __exit__ of a block do that sets one thing.
void enter_block(const py::object &owner, const char *kind, const py::object &value);
void leave_block(const py::object &owner);

// Adds the classes of modes to the module.
void bind_modes(py::module_ &module);

}  // namespace yoke_python
