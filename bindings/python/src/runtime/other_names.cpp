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

// Name of PyTorch that a place does not have.
struct Foreign {
    const char *place, *name, *text;
};

const Foreign kForeign[] = {
#define YOKE_FOREIGN_NAME(place, name, text) {place, name, text},
#include "bindings/python/src/runtime/foreign_names.inc"
#undef YOKE_FOREIGN_NAME
};

// Descriptor of a name that tensors do not have. An instance's own attribute comes before it.
struct Missing {
    PyObject ob_base;
    const Foreign *row;
};

PyObject *get_missing(PyObject *self, PyObject *, PyObject *)
{
    const Foreign *row = reinterpret_cast<Missing *>(self)->row;
    return PyErr_Format(PyExc_AttributeError, "'yoke.Tensor' object has no attribute '%s'; %s",
                        row->name, row->text);
}

PyTypeObject *make_missing_type()
{
    PyType_Slot slots[] = {
        {Py_tp_descr_get, reinterpret_cast<void *>(get_missing)},
        {0, nullptr},
    };
    PyType_Spec spec = {"yoke._yoke._Missing", sizeof(Missing), 0, Py_TPFLAGS_DEFAULT, slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
}

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

const char *foreign_name(const char *place, const char *name)
{
    for (const Foreign &row : kForeign)
        if (std::strcmp(row.place, place) == 0 && std::strcmp(row.name, name) == 0) return row.text;
    return nullptr;
}

bool add_foreign_names(PyTypeObject *type)
{
    PyTypeObject *missing = make_missing_type();
    bool ok = missing != nullptr;
    for (const Foreign &row : kForeign) {
        if (!ok || std::strcmp(row.place, "tensor") != 0) continue;
        PyObject *name = PyUnicode_InternFromString(row.name);
        PyObject *made = name ? missing->tp_alloc(missing, 0) : nullptr;
        if (made) reinterpret_cast<Missing *>(made)->row = &row;
        ok = made && PyDict_SetDefault(type->tp_dict, name, made);
        Py_XDECREF(made);
        Py_XDECREF(name);
    }
    PyType_Modified(type);
    Py_XDECREF(missing);
    return ok;
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
