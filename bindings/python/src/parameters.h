// parameters.h: positional and keyword parameters of a hand-written function, sorted by name.
#pragma once

#include "error.h"

namespace yoke_python {

// Puts the arguments of a vectorcall into `values`, which hold the defaults before: null where there
// is none. The last `keyword_only` of the `count` parameters are given by name alone.
bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                     PyObject **values);

}  // namespace yoke_python
