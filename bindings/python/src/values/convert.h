// convert.h: Python values to what the C API takes, with errors that name the call and the argument.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include <vector>

namespace yoke_python {

// Each returns false with a Python error set where the value does not serve.
bool to_int64(PyObject *value, const Place &place, int64_t *out);
bool to_double(PyObject *value, const Place &place, double *out);
bool to_bool(PyObject *value, const Place &place, int32_t *out);
bool to_text(PyObject *value, const Place &place, const char **out);  // lives as long as `value`
bool to_dtype(PyObject *value, const Place &place, yoke_dtype *out);  // None is YOKE_NONE
bool to_scalar(PyObject *value, const Place &place, yoke_arg *out);

// Whether a value is True or False, Python's or NumPy's, which has no __index__, and as a float would change what it
// is.
bool is_bool(PyObject *value);

// Whether a value is a number: Python's, or one that becomes one (NumPy's scalars) and is no array.
bool is_number(PyObject *value);

// Whether a value is one int, and neither a tensor nor a list.
bool is_lone_int(PyObject *value);

// An int or a sequence of ints, appended to `out`.
bool to_ints(PyObject *value, const Place &place, std::vector<int64_t> *out);

// An index of the current kind, a spec or a Device; None is null, the current device. The handle is
// borrowed: devices live as long as the library.
bool to_device(PyObject *value, const Place &place, yoke_device **out);

// Reads a device where null will not do: None becomes the current device.
bool to_device_or_current(PyObject *value, const Place &place, yoke_device **out);

// A tuple of ints.
PyObject *int_tuple(const int64_t *values, int64_t count);

}  // namespace yoke_python
