// dtype.h: Python objects such as yoke.float32: a single object for each dtype, compared by identity.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// Makes the objects and adds them to the module. Returns false with a Python error set on failure.
bool init_dtypes(PyObject *module);

// Returns the object of a dtype: a new reference, or null with a Python error set.
PyObject *dtype_object(yoke_dtype dtype);

// Puts the number of a dtype into *out. Returns false, with no error set, if the object is no dtype.
bool dtype_number(PyObject *object, yoke_dtype *out);

}  // namespace yoke_python
