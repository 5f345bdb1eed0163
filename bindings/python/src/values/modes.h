// modes.h: modes put in force by `with` blocks: grad mode, autocast, the current device and streams.
//
// C has modes for each thread, Python for each context (contextvars). Tasks of one thread have separate modes, and
// pass them to their own new tasks. yoke/_modes.py keeps the blocks of a context and their sum, as a Modes object in
// a context variable. Code that calls into C with a dependence on modes calls sync_modes() first. sync_modes() puts
// the running context's modes in force in this thread; for a mode not set by the context it restores the thread's
// own.
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

// Makes a setting, by a call such as set_device, end with the block around it. Returns false if no block of this
// context sets this kind, "grad", "anomaly", "device" or "stream" of the device: the setting then belongs to the
// thread.
bool override_mode(const char *kind, const py::object &value, yoke_device *device = nullptr);

// Enter and leave a block that sets a single thing: __enter__ and __exit__.
void enter_block(const py::object &owner, const char *kind, const py::object &value);
void leave_block(const py::object &owner);

// Adds the classes of modes to the module.
void bind_modes(py::module_ &module);

}  // namespace yoke_python
