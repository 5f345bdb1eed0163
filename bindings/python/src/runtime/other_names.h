// other_names.h: PyTorch's names of arguments, which calls take beside their own (core/ops/other_names.def).
#pragma once

#include <Python.h>

namespace yoke_python {

// Argument of a call, found by another name.
struct OtherName {
    int place;     // among the call's own names; -1 for an unknown name
    bool is_flag;  // True stands for 1 and False for 0
};

// Returns what `name` means in a call with these `count` arguments.
OtherName find_other_name(const char *call, const char *name, const char *const *names, int count);

// Returns the value of a flag as its number, borrowed; null, with TypeError set, unless the value is a bool.
PyObject *flag_number(const char *call, const char *name, PyObject *value);

// Raises TypeError for an argument that a call has under two names. Returns false.
bool raise_both_names(const char *call, const char *first, const char *second);

// Returns what to write for a name of PyTorch that `place`, a module or "tensor", does not have; null for other names.
const char *foreign_name(const char *place, const char *name);

// Adds names of PyTorch that tensors do not have to the type Tensor: a look-up raises AttributeError with the remedy.
// Returns false with a Python error set on failure.
bool add_foreign_names(PyTypeObject *type);

}  // namespace yoke_python
