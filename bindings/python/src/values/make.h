// make.h: yoke.tensor(data): a new tensor with a copy of Python data.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/types.h"

namespace yoke_python {

struct MakeOptions {
    const char *call = "tensor";
    yoke_dtype dtype = YOKE_NONE;   // follows the data
    yoke_device *device = nullptr;  // where the data is, else the current one
    int32_t requires_grad = 0;
};

// Makes a tensor from a number, nested sequences of numbers, a buffer (NumPy arrays, bytes, array.array) or a tensor.
// Integers give int64, floats float32, truth values bool; a buffer keeps its dtype. Ragged sequences raise ValueError
// with the position, as does a number that the dtype cannot hold.
PyObject *make_tensor(PyObject *data, const MakeOptions &options);

// Implements yoke.tensor, a METH_FASTCALL function.
PyObject *tensor_function(PyObject *module, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords);

// make_list.cpp: part for numbers and nested sequences; returns a CPU tensor's handle, null on error.
yoke_tensor *tensor_from_numbers(PyObject *data, const MakeOptions &options, yoke_device *device);

}  // namespace yoke_python
