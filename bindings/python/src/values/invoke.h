// invoke.h: the one way in which Python calls an op.
//
// Arguments of an op are read from yoke_op_info once, at import; a call then looks nothing up by name,
// except keywords. Functions, methods and operators all end in `invoke`.
#pragma once

#include "bindings/python/src/values/tensor.h"

namespace yoke_python {

// Every op of ops.inc, by its place there. Ids are looked up by name, because they differ between versions.
enum OpPlace : int {
#define YOKE_PY_OP(name, id, doc) kOp_##name,
#include "bindings/python/src/values/ops.inc"
#undef YOKE_PY_OP
    kOpCount
};

struct OpSpec;

// Reads the table. Returns false with a Python error set if an op is missing in the library.
bool init_ops();

// Adds the functions to the module.
bool add_op_functions(PyObject *module);

// Adds the ops that are methods too.
void add_op_methods(TensorParts &parts);

// Calls an op with `self` (or null) and then `args` as its arguments, in CPython's vectorcall form.
PyObject *invoke(OpPlace op, PyObject *self, PyObject *const *args, Py_ssize_t count,
                 PyObject *keywords);

// Returns an op under another name, which its errors say.
OpSpec under_name(OpPlace op, const char *name);

// Calls an op under another name.
PyObject *invoke_named(OpSpec &spec, PyObject *self, PyObject *const *args, Py_ssize_t count,
                       PyObject *keywords);

const char *op_name(OpPlace op);

// Returns x + y and similar; Py_NotImplemented if a side is not a tensor, number or array.
PyObject *invoke_operator(OpPlace op, PyObject *x, PyObject *y);

}  // namespace yoke_python
