// habits.h: PyTorch's spellings of what a tensor has by another name: x.half(), x.T, x.size(0).
#pragma once

#include "bindings/python/src/values/tensor.h"

namespace yoke_python {

extern PyMethodDef habit_methods[];  // ends with a null entry

PyObject *tensor_reversed(PyObject *self, void *);    // x.T
PyObject *tensor_transposed(PyObject *self, void *);  // x.mT

}  // namespace yoke_python
