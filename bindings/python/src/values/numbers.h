// numbers.h: elements of a tensor as Python numbers: item, tolist, bool, float, int, index.
#pragma once

#include "bindings/python/src/values/tensor.h"

namespace yoke_python {

// Returns the one element of a tensor: a new reference, or null with a Python error set.
PyObject *tensor_item(PyObject *self);

// Adds the methods and slots for numbers to the type Tensor.
void add_numbers(TensorParts &parts);

}  // namespace yoke_python
