// attributes.cpp: x.shape and the other attributes of a tensor.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/device.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/elements.h"

#include "yoke/autograd.h"
#include "yoke/device.h"
#include "yoke/stream.h"

#include <cstring>
#include <vector>

namespace yoke_python {
namespace {

// Returns the result of a getter, called with a live handle. Raises for a closed tensor.
template <PyObject *(*kGet)(yoke_tensor *)>
PyObject *get(PyObject *self, void *name)
{
    yoke_tensor *tensor = tensor_argument(self, {static_cast<const char *>(name), "self"});
    return tensor ? kGet(tensor) : nullptr;
}

PyObject *shape(yoke_tensor *x)
{
    return int_tuple(yoke_tensor_shape(x), yoke_tensor_ndim(x));
}

PyObject *strides(yoke_tensor *x)
{
    return int_tuple(yoke_tensor_strides(x), yoke_tensor_ndim(x));
}

template <int64_t (*kNumber)(yoke_tensor *)>
PyObject *number(yoke_tensor *x)
{
    return PyLong_FromLongLong(kNumber(x));
}

template <int32_t (*kTruth)(yoke_tensor *)>
PyObject *truth(yoke_tensor *x)
{
    return PyBool_FromLong(kTruth(x));
}

PyTypeObject *count_type;

PyObject *call_count(PyObject *self, PyObject *args, PyObject *keywords)
{
    if (PyTuple_GET_SIZE(args) || (keywords && PyDict_GET_SIZE(keywords)))
        return raise_error(YOKE_E_TYPE, "numel", "takes no arguments");
    return PyNumber_Index(self);
}

// Pickles as a plain int.
PyObject *reduce_count(PyObject *self, PyObject *)
{
    return Py_BuildValue("(O(N))", &PyLong_Type, PyLong_FromLongLong(PyLong_AsLongLong(self)));
}

// Makes the class of x.numel: an int that can also be called, because PyTorch's numel is a method. Null with an error
// set on failure.
PyTypeObject *make_count_type()
{
    static PyMethodDef methods[] = {
        {"__reduce__", reduce_count, METH_NOARGS, "Returns the parts of a plain int for pickle."},
        {},
    };
    PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Number of elements; a call returns the number too.")},
        {Py_tp_call, slot(call_count)},
        {Py_tp_methods, methods},
        {0, nullptr},
    };
    PyType_Spec spec = {"yoke._yoke._Count", 0, 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *bases = PyTuple_Pack(1, &PyLong_Type);
    PyObject *made = bases ? PyType_FromSpecWithBases(&spec, bases) : nullptr;
    Py_XDECREF(bases);
    return reinterpret_cast<PyTypeObject *>(made);
}

PyObject *numel(yoke_tensor *x)
{
    if (!count_type && !(count_type = make_count_type())) return nullptr;
    return PyObject_CallFunction(reinterpret_cast<PyObject *>(count_type), "L",
                                 static_cast<long long>(yoke_tensor_numel(x)));
}

PyObject *dtype(yoke_tensor *x)
{
    return dtype_object(yoke_tensor_dtype(x));
}

PyObject *device(yoke_tensor *x)
{
    return device_object(yoke_tensor_device(x));
}

PyObject *grad(yoke_tensor *x)
{
    yoke_tensor *out = nullptr;
    if (yoke_tensor_grad(x, &out)) return raise_last_error();
    if (!out) Py_RETURN_NONE;
    return wrap_tensor(out);
}

int raise_delete(const char *name)
{
    raise_error(YOKE_E_TYPE, name, "the attribute cannot be deleted");
    return -1;
}

int set_grad(PyObject *self, PyObject *value, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"grad", "self"});
    yoke_tensor *grad = nullptr;
    if (!tensor) return -1;
    if (value && value != Py_None && !(grad = tensor_argument(value, {"grad", "value"}))) return -1;
    return yoke_tensor_set_grad(tensor, grad) ? (raise_last_error(), -1) : 0;
}

int set_requires_grad(PyObject *self, PyObject *value, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"requires_grad", "self"});
    int32_t required = 0;
    if (!tensor) return -1;
    if (!value) return raise_delete("requires_grad");
    if (!to_bool(value, {"requires_grad", "value"}, &required)) return -1;
    return yoke_tensor_set_requires_grad(tensor, required) ? (raise_last_error(), -1) : 0;
}

PyObject *is_closed(PyObject *self, void *)
{
    return PyBool_FromLong(!handle_of(self));
}

PyObject *byte_strides(yoke_tensor *tensor)
{
    if (yoke_tensor_is_contiguous(tensor) == 1) return new_reference(Py_None);
    std::vector<int64_t> bytes(yoke_tensor_strides(tensor),
                               yoke_tensor_strides(tensor) + yoke_tensor_ndim(tensor));
    for (int64_t &stride : bytes) stride *= yoke_tensor_itemsize(tensor);
    return int_tuple(bytes.data(), static_cast<int64_t>(bytes.size()));
}

// Returns the dict of version 3: the consumer orders itself behind `stream`, where 1 is the legacy default stream.
// Raises if the tensor is not on CUDA, has no such dtype, or requires grad.
PyObject *cuda_array_interface(yoke_tensor *tensor)
{
    yoke_device *device = yoke_tensor_device(tensor);
    const char *typestr = array_type(yoke_tensor_dtype(tensor));
    if (std::strcmp(yoke_device_kind(device), "cuda") != 0 || !typestr)
        return PyErr_Format(PyExc_AttributeError,
                            "a tensor of %s on %s has no __cuda_array_interface__",
                            yoke_dtype_name(yoke_tensor_dtype(tensor)), yoke_device_spec(device));
    if (yoke_tensor_requires_grad(tensor) == 1)
        return raise_error(
            YOKE_E_STATE, "__cuda_array_interface__",
            "the tensor requires grad, which other libraries cannot follow; detach it first");
    yoke_stream *stream = nullptr;
    if (yoke_current_stream(device, &stream)) return raise_last_error();
    const auto handle = reinterpret_cast<uintptr_t>(yoke_stream_handle(stream));
    yoke_stream_release(stream);
    return Py_BuildValue(
        "{s:N,s:s,s:(KO),s:N,s:i,s:K}", "shape",
        int_tuple(yoke_tensor_shape(tensor), yoke_tensor_ndim(tensor)), "typestr", typestr, "data",
        static_cast<unsigned long long>(reinterpret_cast<uintptr_t>(yoke_tensor_data(tensor))),
        Py_False, "strides", byte_strides(tensor), "version", 3, "stream",
        static_cast<unsigned long long>(handle ? handle : 1));
}

// Refuses a masked array of NumPy's that stands on the left of an operator.
PyObject *masked_data(PyObject *self, void *)
{
    PyObject *module = PyImport_ImportModule("yoke._numpy");
    PyObject *refused = module ? PyObject_CallMethod(module, "masked_data", "O", self) : nullptr;
    Py_XDECREF(module);
    return refused;
}

template <PyObject *(*kGet)(yoke_tensor *)>
constexpr PyGetSetDef attribute(const char *name, const char *doc, setter set = nullptr)
{
    return {name, get<kGet>, set, doc, const_cast<char *>(name)};
}

const PyGetSetDef tensor_attributes[] = {
    attribute<shape>("shape", "Lengths of the axes, a tuple of ints."),
    attribute<strides>("strides", "Strides of the axes in elements, a tuple of ints."),
    attribute<number<yoke_tensor_ndim>>("ndim", "Number of axes."),
    attribute<numel>("numel", "Number of elements, an int; x.numel() is the same number."),
    attribute<number<yoke_tensor_nbytes>>("nbytes", "Bytes of all elements."),
    attribute<number<yoke_tensor_itemsize>>("itemsize", "Bytes of one element."),
    attribute<dtype>("dtype", "Element type, such as yoke.float32."),
    attribute<device>("device", "Device that holds the elements."),
    attribute<truth<yoke_tensor_is_leaf>>("is_leaf", "True if no recorded op made this tensor."),
    attribute<truth<yoke_tensor_requires_grad>>(
        "requires_grad",
        "True if backward computes a gradient for this tensor. Can be set on a leaf.",
        set_requires_grad),
    attribute<grad>(
        "grad",
        "Gradient of a leaf, or of a result after retain_grad(), added up over backward passes; else None. Can be set.",
        set_grad),
    attribute<cuda_array_interface>("__cuda_array_interface__",
                                    "Description of the memory for CUDA libraries of Python."),
    {"closed", is_closed, nullptr, "True after close().", nullptr},
    {"_data", masked_data, nullptr,
     "Attribute of masked arrays; raises TypeError when numpy.ma reads it.", nullptr},
};

}  // namespace

void add_attributes(TensorParts &parts)
{
    parts.add(tensor_attributes);
}

}  // namespace yoke_python
