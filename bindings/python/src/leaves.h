// leaves.h: what module.cpp puts together above the runtime and the values; no leaf calls another.
#pragma once

#include "bindings/python/src/runtime/bind.h"
#include "bindings/python/src/values/tensor.h"

namespace yoke_python {

// Add a part of the type Tensor each.
void add_methods(TensorParts &parts);
void add_attributes(TensorParts &parts);
void add_habits(TensorParts &parts);
void add_words(TensorParts &parts);
void add_operators(TensorParts &parts);
void add_index(TensorParts &parts);
void add_buffer(TensorParts &parts);
void add_dlpack(TensorParts &parts);
void add_hooks(TensorParts &parts);

// Implement yoke.device, plain so that a pickled Device can name it, and yoke.from_dlpack.
PyObject *device_function(PyObject *module, PyObject *const *args, Py_ssize_t count,
                          PyObject *keywords);
PyObject *from_dlpack(PyObject *module, PyObject *source);

// Add a part of the module each.
void bind_devices(py::module_ &module);
void bind_library(py::module_ &module);
void bind_memory(py::module_ &module);
void bind_storage(py::module_ &module);
void bind_autograd(py::module_ &module);
void bind_hooks(py::module_ &module);
void bind_optimizer(py::module_ &module);
void bind_training(py::module_ &module);
void bind_state(py::module_ &module);
void bind_checkpoints(py::module_ &module);
void bind_comm(py::module_ &module);
void bind_parallel(py::module_ &module);
void bind_jobs(py::module_ &module);
void bind_preempt(py::module_ &module);
void bind_graph(py::module_ &module);
void bind_inventory(py::module_ &module);
void bind_streams(py::module_ &module);
void bind_doctor(py::module_ &module);
void bind_select(py::module_ &module);
void bind_relief(py::module_ &module);

}  // namespace yoke_python
