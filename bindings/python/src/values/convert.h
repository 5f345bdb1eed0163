// convert.h: conversion of Python values to arguments of the C API, with errors that name call and argument.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include <vector>

namespace yoke_python {

// Convert a value to *out. Return false with a Python error set if the value does not serve.
bool to_int64(PyObject *value, const Place &place, int64_t *out);
bool to_double(PyObject *value, const Place &place, double *out);
bool to_bool(PyObject *value, const Place &place, int32_t *out);
bool to_text(PyObject *value, const Place &place, const char **out);  // lives as long as `value`
bool to_dtype(PyObject *value, const Place &place, yoke_dtype *out);  // for None YOKE_NONE
bool to_scalar(PyObject *value, const Place &place, yoke_arg *out);

// Returns whether a value is True or False, of Python or NumPy. NumPy's has no __index__, and its meaning would
// change as a float.
bool is_bool(PyObject *value);

// Returns whether a value is a number: Python's, or a value convertible to a number (NumPy's scalars) but not an
// array.
bool is_number(PyObject *value);

// Returns whether a value is a single int, and neither a tensor nor a list.
bool is_lone_int(PyObject *value);

// Appends an int, or each int of a sequence, to `out`. Returns false with a Python error set for any other value.
bool to_ints(PyObject *value, const Place &place, std::vector<int64_t> *out);

// Appends a number, or each number of a sequence, to `out`. Returns false with a Python error set for any other value.
bool to_doubles(PyObject *value, const Place &place, std::vector<double> *out);

// Reads an index of the current kind, a spec or a Device; None becomes null, the current device. The handle is
// borrowed: devices live as long as the library. Returns false with a Python error set.
bool to_device(PyObject *value, const Place &place, yoke_device **out);

// Reads a Generator. While a generator is in use, its numbers are the thread's own, and the argument stays absent.
// Returns false with a Python error set for any other value.
bool to_generator(PyObject *value, const Place &place, yoke_arg *out);

// Sets whether values are read as in PyTorch: an index is a card, "cuda" the card of this index, and Python's types
// float, int and bool are dtypes. -1 ends it. A thread has its own index, at first 0.
void set_foreign_card(int32_t index);

// Returns whether an empty list of axes means every axis here, as it does in PyTorch for sums and their like.
bool empty_means_every_axis(const Place &place);

// Reads a device where null will not do: None becomes the current device.
bool to_device_or_current(PyObject *value, const Place &place, yoke_device **out);

// Returns a tuple of ints: a new reference, or null with a Python error set.
PyObject *int_tuple(const int64_t *values, int64_t count);

}  // namespace yoke_python
