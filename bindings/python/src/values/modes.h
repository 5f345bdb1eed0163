// modes.h: what `with` blocks put in force: grad mode, autocast, the current device and streams.
//
// C knows these for each thread, Python for each context (contextvars): tasks of one thread have their own, and
// hand them to the tasks that they make. yoke/_modes.py keeps the blocks of a context and says what they come to,
// as a Modes object in a context variable. Whatever calls into C where they count says sync_modes() first, which
// puts those of the running context in force in this thread, and what the thread had before where it has none.
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

// Ends, with a block, what a call inside the block has set: set_device and its like. False where no block of
// this context sets a thing of that kind, "grad", "device" or "stream" of that device: it is the thread's then.
bool override_mode(const char *kind, const py::object &value, yoke_device *device = nullptr);

// Enter and leave a block that sets a single thing: __enter__ and __exit__.
void enter_block(const py::object &owner, const char *kind, const py::object &value);
void leave_block(const py::object &owner);

// Adds the classes of modes to the module.
void bind_modes(py::module_ &module);

}  // namespace yoke_python
