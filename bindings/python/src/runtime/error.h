// error.h: conversion of a failure to a Python exception.
//
// Each status code has its class: a subclass of yoke.Error and, if Python has a matching exception, of this exception
// too. An exception carries .code (the C number), .native_code, .device and .call.
//
// Functions here set the Python error and return null, as CPython's do. Code called by pybind11 wraps them in `check`
// and `require`, which throw py::error_already_set.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "yoke/types.h"

namespace yoke_python {

// Makes the classes and adds them to the module. Returns false with a Python error set on failure.
bool init_errors(PyObject *module);

// Raises the library's last error, with its causes as __cause__. `call` names the failed call where the C function's
// own name would not: an op. Returns null.
PyObject *raise_last_error(const char *call = nullptr);

// Raises an error of the binding's own: `call` is the Python name, "softmax". Format as in
// PyUnicode_FromFormat. Returns null.
PyObject *raise_error(yoke_status status, const char *call, const char *format, ...);

// Adds a reference to the object and returns the object, as Py_NewRef of Python 3.10.
inline PyObject *new_reference(PyObject *object)
{
    Py_INCREF(object);
    return object;
}

// Where a value came from, for messages: "softmax(): argument 'axis'".
struct Place {
    const char *call;
    const char *argument;
};

// Raises TypeError "softmax(): argument 'axis' must be an integer, not str". Returns null.
PyObject *raise_type(const Place &place, const char *wanted, PyObject *given);

}  // namespace yoke_python
