// dlpack.h: exchange of memory with other libraries through DLPack capsules, both generations.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// Tensor.__dlpack__ and __dlpack_device__.
PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count,
                        PyObject *keywords);
PyObject *tensor_dlpack_device(PyObject *self, PyObject *);

// yoke.from_dlpack(x): a tensor over the memory of anything that has __dlpack__, or of a capsule.
PyObject *from_dlpack(PyObject *module, PyObject *source);

}  // namespace yoke_python
