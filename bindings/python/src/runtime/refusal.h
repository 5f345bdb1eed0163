// refusal.h: the library's TypeError for arguments that a function bound through pybind11 refuses.
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

// Makes the functions of the module and of its classes raise yoke.TypeError, with the call and the argument, where
// pybind11 raises a TypeError of its own. Sees only functions that are bound before the call.
void name_refusals(const py::module_ &module);

}  // namespace yoke_python
