#include "bindings/python/src/values/dtype.h"

#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/elements.h"

#include "yoke/tensor.h"

#include <structmember.h>

#include <cstring>

namespace yoke_python {
namespace {

struct DtypeObject {
    PyObject ob_base;
    const char *name;
    int number;
    Py_ssize_t itemsize;
};

PyTypeObject *dtype_type;
PyObject *dtypes[YOKE_DTYPE_COUNT];

DtypeObject *as_dtype(PyObject *object)
{
    return reinterpret_cast<DtypeObject *>(object);
}

PyObject *represent_dtype(PyObject *self)
{
    return PyUnicode_FromFormat("yoke.%s", as_dtype(self)->name);
}

PyObject *reduce_dtype(PyObject *self, PyObject *)
{
    return Py_BuildValue("(O(s))", dtype_type, as_dtype(self)->name);
}

PyObject *find_dtype(PyTypeObject *, PyObject *args, PyObject *keywords)
{
    yoke_dtype number = YOKE_NONE;
    if ((keywords && PyDict_GET_SIZE(keywords)) || PyTuple_GET_SIZE(args) != 1)
        return raise_error(YOKE_E_TYPE, "dtype", "takes one name such as \"float32\"");
    if (!to_dtype(PyTuple_GET_ITEM(args, 0), {"dtype", "name"}, &number)) return nullptr;
    if (number == YOKE_NONE)
        return raise_type({"dtype", "name"}, "a name such as \"float32\"", Py_None);
    return dtype_object(number);
}

PyObject *is_floating_point(PyObject *self, void *)
{
    return PyBool_FromLong(is_floating(as_dtype(self)->number));
}

PyMemberDef dtype_members[] = {
    {"name", T_STRING, offsetof(DtypeObject, name), READONLY, "Name, such as \"float32\"."},
    {"number", T_INT, offsetof(DtypeObject, number), READONLY, "Number in the C API."},
    {"itemsize", T_PYSSIZET, offsetof(DtypeObject, itemsize), READONLY, "Bytes of one element."},
    {},
};

PyGetSetDef attributes[] = {
    {"is_floating_point", is_floating_point, nullptr,
     "True for a dtype with fractions, which can have gradients.", nullptr},
    {},
};

PyMethodDef dtype_methods[] = {
    {"__reduce__", reduce_dtype, METH_NOARGS, "Returns the name for pickle."},
    {},
};

const char kDtypeDoc[] =
    "dtype(name)\n--\n\nElement type, such as yoke.float32. Each dtype is a single object.";

PyObject *make(yoke_dtype number)
{
    PyObject *made = dtype_type->tp_alloc(dtype_type, 0);
    if (!made) return nullptr;
    as_dtype(made)->name = yoke_dtype_name(number);
    as_dtype(made)->number = number;
    as_dtype(made)->itemsize = static_cast<Py_ssize_t>(yoke_dtype_size(number));
    return made;
}

}  // namespace

bool init_dtypes(PyObject *module)
{
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>(kDtypeDoc)},
        {Py_tp_new, slot(find_dtype)},
        {Py_tp_repr, slot(represent_dtype)},
        {Py_tp_members, dtype_members},
        {Py_tp_getset, attributes},
        {Py_tp_methods, dtype_methods},
        {0, nullptr},
    };
    PyType_Spec spec = {"yoke.dtype", sizeof(DtypeObject), 0, Py_TPFLAGS_DEFAULT, slots};
    dtype_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
    if (!dtype_type) return false;
    Py_INCREF(dtype_type);
    if (PyModule_AddObject(module, "dtype", reinterpret_cast<PyObject *>(dtype_type)) < 0)
        return false;
    for (yoke_dtype number = 1; number < YOKE_DTYPE_COUNT; number++) {
        dtypes[number] = make(number);
        if (!dtypes[number]) return false;
        Py_INCREF(dtypes[number]);
        if (PyModule_AddObject(module, as_dtype(dtypes[number])->name, dtypes[number]) < 0)
            return false;
    }
    return true;
}

PyObject *dtype_object(yoke_dtype dtype)
{
    if (dtype > 0 && dtype < YOKE_DTYPE_COUNT) return new_reference(dtypes[dtype]);
    return raise_error(
        YOKE_E_UNSUPPORTED, "dtype",
        "the library has a dtype, number %d, that this package does not support; update the package",
        dtype);
}

bool dtype_number(PyObject *object, yoke_dtype *out)
{
    if (Py_TYPE(object) != dtype_type) return false;
    *out = as_dtype(object)->number;
    return true;
}

}  // namespace yoke_python
