// parameters.h: hand-written functions as CPython's tables have them, and their positional and keyword parameters.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// Entry of a method table for a function in CPython's vectorcall form with keywords, and that function as the table has
// it.
constexpr int kKeywords = METH_FASTCALL | METH_KEYWORDS;
template <class Function>
PyCFunction keywords(Function *function)
{
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// A function as the field of a PyType_Slot.
template <class Function>
void *slot(Function *function)
{
    return reinterpret_cast<void *>(function);
}

// Puts the arguments of a vectorcall into `values`, which hold the defaults before: null where there
// is none. The last `keyword_only` of the `count` parameters are given by name alone.
bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                     PyObject **values);

// Returns "there is no argument 'dim'; did you mean 'axis'?", of the `count` names that there are: a new reference, or
// null. Advice on words of other libraries holds for calls of Yoke alone: a class of the script means its own by them.
PyObject *unknown_keyword(PyObject *name, const char *const *names, int count, bool is_ours = true);

}  // namespace yoke_python
