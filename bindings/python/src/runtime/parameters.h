// parameters.h: hand-written functions in CPython's tables, and their positional and keyword parameters.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include <algorithm>
#include <cstddef>

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

// Text as a parameter of a template.
template <size_t kSize>
struct Literal {
    constexpr Literal(const char (&given)[kSize]) { std::copy_n(given, kSize, text); }
    char text[kSize];
};

// Calls a C function without arguments. The name of the call is in the error, unlike in Python's error for METH_NOARGS.
template <Literal kCall, PyObject *kFunction(PyObject *, PyObject *)>
PyObject *without_arguments(PyObject *self, PyObject *const *args, Py_ssize_t count,
                            PyObject *keywords)
{
    if ((count || keywords) &&
        !read_parameters(kCall.text, nullptr, 0, 0, args, count, keywords, nullptr))
        return nullptr;
    return kFunction(self, nullptr);
}

// Calls a C function of a single argument, by position or by name.
template <Literal kCall, Literal kArgument, PyObject *kFunction(PyObject *, PyObject *)>
PyObject *with_argument(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {kArgument.text};
    PyObject *value = nullptr;
    return read_parameters(kCall.text, kNames, 1, 0, args, count, keywords, &value)
               ? kFunction(self, value)
               : nullptr;
}

// Returns "there is no argument 'dim'; did you mean 'axis'?", chosen from `count` names: a new reference, or null.
// Advice on words of other libraries is only for calls of Yoke: a class of the script may give such words another
// meaning.
PyObject *unknown_keyword(PyObject *name, const char *const *names, int count, bool is_ours = true);

}  // namespace yoke_python
