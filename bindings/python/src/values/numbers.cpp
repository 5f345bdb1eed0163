#include "bindings/python/src/values/numbers.h"

#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/elements.h"

#include <vector>

namespace yoke_python {
namespace {

// Copies all elements to host memory. Returns false with the Python error set. Signal handlers run while the call waits
// for a device.
bool copy_elements(yoke_tensor *tensor, void *to, int64_t bytes) noexcept
try {
    if (!may_wait(tensor)) {
        const yoke_status status =
            with_relief([&] { return yoke_tensor_copy_to_host(tensor, to, bytes); });
        return status == YOKE_OK || raise_last_error() != nullptr;
    }
    Waiting waiting;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release;
        return yoke_tensor_copy_to_host(tensor, to, bytes);
    });
    waiting.check(status);
    return true;
} catch (py::error_already_set &error) {
    error.restore();
    return false;
}

// Reads the element of a one-element tensor into 8 bytes of host memory. Returns false with an error set.
bool read_one(PyObject *self, const char *call, yoke_dtype *dtype, char (&bytes)[8])
{
    yoke_tensor *tensor = tensor_argument(self, {call, "self"});
    if (!tensor) return false;
    if (yoke_tensor_numel(tensor) != 1) {
        PyObject *shape = int_tuple(yoke_tensor_shape(tensor), yoke_tensor_ndim(tensor));
        if (shape)
            raise_error(YOKE_E_VALUE, call,
                        "a tensor of shape %R has %lld elements; it must have one element", shape,
                        static_cast<long long>(yoke_tensor_numel(tensor)));
        Py_XDECREF(shape);
        return false;
    }
    *dtype = yoke_tensor_dtype(tensor);
    const Hold hold(tensor);
    return copy_elements(tensor, bytes, yoke_tensor_nbytes(tensor));
}

PyObject *one_number(PyObject *self, const char *call)
{
    yoke_dtype dtype = YOKE_NONE;
    char bytes[8];
    return read_one(self, call, &dtype, bytes) ? read_element(dtype, bytes) : nullptr;
}

// Row-major elements and the rest of their shape.
struct Elements {
    yoke_dtype dtype;
    int64_t itemsize;
    const int64_t *shape;
    int64_t ndim;
    const char *next;
};

PyObject *nested(Elements &from, int64_t axis)
{
    if (axis == from.ndim) {
        PyObject *number = read_element(from.dtype, from.next);
        from.next += from.itemsize;
        return number;
    }
    PyObject *list = PyList_New(static_cast<Py_ssize_t>(from.shape[axis]));
    for (int64_t i = 0; list && i < from.shape[axis]; i++) {
        PyObject *item = nested(from, axis + 1);
        if (!item)
            Py_CLEAR(list);
        else
            PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), item);
    }
    return list;
}

PyObject *to_list(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"tolist", "self"});
    if (!tensor) return nullptr;
    const Hold hold(tensor);
    const int64_t bytes = yoke_tensor_nbytes(tensor);
    auto *copy = static_cast<char *>(PyMem_Malloc(bytes ? static_cast<size_t>(bytes) : 1));
    if (!copy) return PyErr_NoMemory();
    const bool is_copied = copy_elements(tensor, copy, bytes);
    Elements elements{yoke_tensor_dtype(tensor), yoke_tensor_itemsize(tensor),
                      yoke_tensor_shape(tensor), yoke_tensor_ndim(tensor), copy};
    PyObject *list = is_copied ? nested(elements, 0) : nullptr;
    PyMem_Free(copy);
    return list;
}

int truth_of(PyObject *self)
{
    PyObject *number = one_number(self, "bool");
    const int truth = number ? PyObject_IsTrue(number) : -1;
    Py_XDECREF(number);
    return truth;
}

PyObject *float_of(PyObject *self)
{
    PyObject *number = one_number(self, "float");
    PyObject *result = number ? PyNumber_Float(number) : nullptr;
    Py_XDECREF(number);
    return result;
}

PyObject *int_of(PyObject *self)
{
    PyObject *number = one_number(self, "int");
    PyObject *result = number ? PyNumber_Long(number) : nullptr;
    Py_XDECREF(number);
    return result;
}

PyObject *as_index(PyObject *self)
{
    yoke_tensor *tensor = tensor_argument(self, {"index", "self"});
    if (!tensor) return nullptr;
    const yoke_dtype dtype = yoke_tensor_dtype(tensor);
    if (yoke_tensor_ndim(tensor) != 0 || is_floating(dtype) || dtype == YOKE_BOOL)
        return raise_error(
            YOKE_E_TYPE, "index",
            "the tensor has %lld axes and dtype %s; an index must be an integer tensor without axes",
            static_cast<long long>(yoke_tensor_ndim(tensor)), yoke_dtype_name(dtype));
    return int_of(self);
}

PyObject *item(PyObject *self, PyObject *)
{
    return tensor_item(self);
}

const PyMethodDef number_methods[] = {
    {"tolist", keywords(without_arguments<"tolist", to_list>), kKeywords,
     "tolist($self, /)\n--\n\nReturns the elements as nested lists; a number for a tensor without axes."},
    {"item", keywords(without_arguments<"item", item>), kKeywords,
     "item($self, /)\n--\n\nReturns the only element as a Python number. ValueError for a tensor of more or fewer elements."},
};

const PyType_Slot number_slots[] = {
    {Py_nb_bool, slot(truth_of)},
    {Py_nb_float, slot(float_of)},
    {Py_nb_int, slot(int_of)},
    {Py_nb_index, slot(as_index)},
};

}  // namespace

PyObject *tensor_item(PyObject *self)
{
    return one_number(self, "item");
}

void add_numbers(TensorParts &parts)
{
    parts.add(number_methods);
    parts.add(number_slots);
}

}  // namespace yoke_python
