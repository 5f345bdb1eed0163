// parameters.h: hand-written functions in CPython's tables, and their positional and keyword parameters.
#pragma once

#include "bindings/python/src/runtime/error.h"

namespace yoke_python {

// Flags of a method table for a function in CPython's vectorcall form with keywords, and the function in the table's
// type.
constexpr int kKeywords = METH_FASTCALL | METH_KEYWORDS;
template <class Function>
PyCFunction keywords(Function *function)
{
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Returns a function as the field of a PyType_Slot.
template <class Function>
void *slot(Function *function)
{
    return reinterpret_cast<void *>(function);
}

// Puts the arguments of a vectorcall into `values`, which hold the defaults before: null for no default. The last
// `keyword_only` of the `count` parameters are given by name alone. Returns false, with TypeError set, for a missing,
// unknown or surplus argument.
bool read_parameters(const char *call, const char *const *names, int count, int keyword_only,
                     PyObject *const *args, Py_ssize_t given, PyObject *keywords,
                     PyObject **values);

// Returns "there is no argument 'dim'; did you mean 'axis'?", chosen from `count` names: a new reference, or null.
// Advice on words of other libraries is only for calls of Yoke: a class of the script may give such words another
// meaning.
PyObject *unknown_keyword(PyObject *name, const char *const *names, int count, bool is_ours = true);

}  // namespace yoke_python
