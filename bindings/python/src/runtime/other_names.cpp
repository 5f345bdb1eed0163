#include "bindings/python/src/runtime/other_names.h"

#include "bindings/python/src/runtime/error.h"

#include <cstring>

namespace yoke_python {
namespace {

struct Row {
    const char *other, *own;
    bool is_flag;
    const char *calls;  // each between spaces; "" for all calls
};

const Row kRows[] = {
#define YOKE_OTHER_NAME(other, own, is_flag, calls) {other, own, is_flag, calls},
#include "bindings/python/src/runtime/other_names.inc"
#undef YOKE_OTHER_NAME
};

bool holds_for(const Row &row, const char *call)
{
    if (!*row.calls) return true;
    const size_t length = std::strlen(call);
    for (const char *at = row.calls; (at = std::strstr(at, call)); at += length)
        if (at[-1] == ' ' && at[length] == ' ') return true;
    return false;
}

}  // namespace

OtherName find_other_name(const char *call, const char *name, const char *const *names, int count)
{
    for (const Row &row : kRows) {
        if (std::strcmp(name, row.other) != 0 || !holds_for(row, call)) continue;
        for (int i = 0; i < count; i++)
            if (std::strcmp(names[i], row.own) == 0) return {i, row.is_flag};
    }
    return {-1, false};
}

PyObject *flag_number(const char *call, const char *name, PyObject *value)
{
    if (!PyBool_Check(value))
        return raise_error(YOKE_E_TYPE, call, "argument '%s' is a %.100s; it takes a bool", name,
                           Py_TYPE(value)->tp_name);
    PyObject *number = PyLong_FromLong(value == Py_True);
    Py_XDECREF(number);  // Python itself holds small numbers for good
    return number;
}

bool raise_both_names(const char *call, const char *first, const char *second)
{
    raise_error(YOKE_E_TYPE, call,
                "arguments '%s' and '%s' are the same argument; give one of the two", first,
                second);
    return false;
}

}  // namespace yoke_python
