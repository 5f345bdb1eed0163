#include "bindings/python/src/values/operands.h"

namespace yoke_python {
namespace {

// The class of NumPy's arrays and scalars, of tensors of other libraries, of tables and pictures has one of these.
constexpr const char *kArrayMethods[] = {"__array__", "__dlpack__", "__array_interface__"};

// Returns an attribute of the class of `value`, borrowed; null, without an error, if the class has no such attribute.
PyObject *of_class(PyObject *value, const char *name)
{
    PyObject *key = PyUnicode_InternFromString(name);
    PyObject *found = key ? _PyType_Lookup(Py_TYPE(value), key) : nullptr;
    Py_XDECREF(key);
    PyErr_Clear();
    return found;
}

// Returns whether a value is an array for Yoke. If a class has __array_ufunc__ = None, its own operators handle
// arrays: NumPy leaves them to the class, and so does Yoke.
bool is_array(PyObject *value)
{
    if (value == Py_None || of_class(value, "__array_ufunc__") == Py_None) return false;
    for (const char *name : kArrayMethods)
        if (of_class(value, name)) return true;
    return false;
}

// Returns `value` as an operand beside `other`: a new reference, NotImplemented if its class may answer, null on
// error.
PyObject *side(const char *call, PyObject *value, PyObject *other)
{
    if (is_operand(value)) return new_reference(value);
    if (!is_array(value)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *module = PyImport_ImportModule("yoke._numpy");
    PyObject *tensor =
        module ? PyObject_CallMethod(module, "operand", "sOO", call, value, other) : nullptr;
    Py_XDECREF(module);
    return tensor;
}

}  // namespace

Operands::Operands(const char *call, PyObject *x, PyObject *y)
    : x_(side(call, x, y)), y_(x_ ? side(call, y, x) : nullptr)
{
}

Operands::~Operands()
{
    Py_XDECREF(x_);
    Py_XDECREF(y_);
}

}  // namespace yoke_python
