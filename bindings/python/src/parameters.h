// parameters.h: positional and keyword parameters of a hand-written function, sorted by name.
#pragma once

#include "error.h"

namespace yoke_python {

// Puts the arguments of a vectorcall into `values`, which hold the defaults before: null where there
// is none. The last `keyword_only` of the `count` parameters are given by name alone.
bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                     PyObject **values);

// "there is no argument 'dim'; did you mean 'axis'?", of the `count` names that there are: a new reference, or null.
PyObject *unknown_keyword(PyObject *name, const char *const *names, int count);

}  // namespace yoke_python
