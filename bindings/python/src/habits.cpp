// habits.cpp: PyTorch's spellings of what a tensor has by another name: x.half(), x.T, x.size(0).
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/invoke.h"

#include "yoke/device.h"

#include <cstring>

namespace yoke_python {
namespace {

template <yoke_dtype kDtype>
PyObject *as_dtype(PyObject *self, PyObject *)
{
    return move_tensor(self, nullptr, kDtype, false);
}

// Finds the current CUDA device, else the first. Returns false with the Python error set.
bool default_cuda(const Place &place, yoke_device **out)
{
    if (!to_device_or_current(Py_None, place, out)) return false;
    if (std::strcmp(yoke_device_kind(*out), "cuda") == 0) return true;
    PyObject *spec = PyUnicode_FromString("cuda");
    const bool ok = spec && to_device(spec, place, out);
    Py_XDECREF(spec);
    return ok;
}

// Reads the device of cuda(): cuda(1) is "cuda:1", whatever the current device is; cuda() is the current CUDA device,
// else the first. Returns false with the Python error set, also for a device of another kind.
bool cuda_device(PyObject *value, const Place &place, yoke_device **out)
{
    if (value == Py_None) return default_cuda(place, out);
    if (PyLong_Check(value) && !PyBool_Check(value)) {
        PyObject *spec = PyUnicode_FromFormat("cuda:%S", value);
        const bool ok = spec && to_device(spec, place, out);
        Py_XDECREF(spec);
        return ok;
    }
    if (!to_device(value, place, out)) return false;
    if (std::strcmp(yoke_device_kind(*out), "cuda") == 0) return true;
    raise_error(YOKE_E_VALUE, place.call,
                "argument 'device' is %s, which is not a CUDA device; write to(\"%s\") instead",
                yoke_device_spec(*out), yoke_device_spec(*out));
    return false;
}

PyObject *cuda(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"device", "non_blocking"};
    PyObject *values[2] = {Py_None, Py_False};
    yoke_device *device = nullptr;
    int32_t non_blocking = 0;
    if (!tensor_argument(self, {"cuda", "self"}) ||
        !read_parameters("cuda", kNames, 2, 0, args, count, keywords, values) ||
        !cuda_device(values[0], {"cuda", "device"}, &device) ||
        !to_bool(values[1], {"cuda", "non_blocking"}, &non_blocking))
        return nullptr;
    return move_tensor(self, device, YOKE_NONE, non_blocking != 0);
}

PyObject *size(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"axis"};
    PyObject *values[1] = {Py_None};
    yoke_tensor *tensor = tensor_argument(self, {"size", "self"});
    if (!tensor || !read_parameters("size", kNames, 1, 0, args, count, keywords, values))
        return nullptr;
    const Hold hold(tensor);
    const int64_t ndim = yoke_tensor_ndim(tensor);
    int64_t axis = 0;
    if (values[0] == Py_None) return int_tuple(yoke_tensor_shape(tensor), ndim);
    if (!to_int64(values[0], {"size", "axis"}, &axis)) return nullptr;
    if (axis < -ndim || axis >= ndim)
        return raise_error(YOKE_E_INDEX, "size",
                           "axis %lld is out of range for a tensor of %lld axes",
                           static_cast<long long>(axis), static_cast<long long>(ndim));
    return PyLong_FromLongLong(yoke_tensor_shape(tensor)[axis < 0 ? axis + ndim : axis]);
}

// Returns x[index] along an axis, as a view: a slice of one element, without its axis.
PyObject *select(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"axis", "index"};
    PyObject *values[2] = {};
    yoke_tensor *tensor = tensor_argument(self, {"select", "self"});
    int64_t axis = 0, index = 0;
    if (!tensor || !read_parameters("select", kNames, 2, 0, args, count, keywords, values) ||
        !to_int64(values[0], {"select", "axis"}, &axis) ||
        !to_int64(values[1], {"select", "index"}, &index))
        return nullptr;
    const int64_t ndim = yoke_tensor_ndim(tensor);
    if (axis < -ndim || axis >= ndim)
        return raise_error(YOKE_E_INDEX, "select",
                           "axis %lld is out of range for a tensor of %lld axes",
                           static_cast<long long>(axis), static_cast<long long>(ndim));
    const int64_t length = yoke_tensor_shape(tensor)[axis < 0 ? axis + ndim : axis];
    if (index < -length || index >= length)
        return raise_error(YOKE_E_INDEX, "select",
                           "argument 'index' is %lld; it must be %lld to %lld for axis %lld",
                           static_cast<long long>(index), -static_cast<long long>(length),
                           static_cast<long long>(length) - 1, static_cast<long long>(axis));
    const int64_t start = index < 0 ? index + length : index;
    PyObject *slice[3] = {PyLong_FromLongLong(axis), PyLong_FromLongLong(start),
                          PyLong_FromLongLong(start + 1)};
    PyObject *part =
        slice[0] && slice[1] && slice[2] ? invoke(kOp_slice, self, slice, 3, nullptr) : nullptr;
    PyObject *result = part ? invoke(kOp_squeeze, part, slice, 1, nullptr) : nullptr;
    Py_XDECREF(part);
    for (PyObject *one : slice) Py_XDECREF(one);
    return result;
}

PyObject *dim(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"dim", "self"});
    return tensor ? PyLong_FromLongLong(yoke_tensor_ndim(tensor)) : nullptr;
}

PyObject *zero(PyObject *self, PyObject *)
{
    if (!tensor_argument(self, {"zero_", "self"})) return nullptr;
    PyObject *number = PyLong_FromLong(0);
    PyObject *result = number ? invoke(kOp_fill_, self, &number, 1, nullptr) : nullptr;
    Py_XDECREF(number);
    return result;
}

PyObject *reversed(PyObject *self, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"T", "self"});
    if (!tensor) return nullptr;
    int64_t axes[YOKE_MAX_NDIM];
    const int64_t ndim = yoke_tensor_ndim(tensor);
    for (int64_t i = 0; i < ndim; i++) axes[i] = ndim - 1 - i;
    PyObject *order = int_tuple(axes, ndim);
    PyObject *result = order ? invoke(kOp_permute, self, &order, 1, nullptr) : nullptr;
    Py_XDECREF(order);
    return result;
}

PyObject *transposed(PyObject *self, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"mT", "self"});
    if (!tensor) return nullptr;
    const int64_t ndim = yoke_tensor_ndim(tensor);
    if (ndim < 2)
        return raise_error(
            YOKE_E_VALUE, "mT",
            "the tensor has %lld axes; it must have two or more, as a matrix or a batch of matrices",
            static_cast<long long>(ndim));
    PyObject *axes[2] = {PyLong_FromLong(-2), PyLong_FromLong(-1)};
    PyObject *result = axes[0] && axes[1] ? invoke(kOp_transpose, self, axes, 2, nullptr) : nullptr;
    Py_XDECREF(axes[0]);
    Py_XDECREF(axes[1]);
    return result;
}

const PyMethodDef habit_methods[] = {
    {"half", keywords(without_arguments<"half", as_dtype<YOKE_F16>>), kKeywords,
     "half($self, /)\n--\n\nReturns to(yoke.float16)."},
    {"bfloat16", keywords(without_arguments<"bfloat16", as_dtype<YOKE_BF16>>), kKeywords,
     "bfloat16($self, /)\n--\n\nReturns to(yoke.bfloat16)."},
    {"float", keywords(without_arguments<"float", as_dtype<YOKE_F32>>), kKeywords,
     "float($self, /)\n--\n\nReturns to(yoke.float32)."},
    {"double", keywords(without_arguments<"double", as_dtype<YOKE_F64>>), kKeywords,
     "double($self, /)\n--\n\nReturns to(yoke.float64)."},
    {"int", keywords(without_arguments<"int", as_dtype<YOKE_I32>>), kKeywords,
     "int($self, /)\n--\n\nReturns to(yoke.int32)."},
    {"long", keywords(without_arguments<"long", as_dtype<YOKE_I64>>), kKeywords,
     "long($self, /)\n--\n\nReturns to(yoke.int64)."},
    {"bool", keywords(without_arguments<"bool", as_dtype<YOKE_BOOL>>), kKeywords,
     "bool($self, /)\n--\n\nReturns to(yoke.bool)."},
    {"cuda", keywords(cuda), kKeywords,
     "cuda($self, /, device=None, non_blocking=False)\n--\n\n"
     "Returns the tensor on a CUDA device: the current CUDA device, else the first, or the device of an index.\n"
     "DeviceUnavailableError says why no CUDA device can be used."},
    {"size", keywords(size), kKeywords,
     "size($self, /, axis=None)\n--\n\nReturns the shape, or the length of one axis."},
    {"select", keywords(select), kKeywords,
     "select($self, /, axis, index)\n--\n\n"
     "Returns the part at one index of an axis, without that axis; a view."},
    {"dim", keywords(without_arguments<"dim", dim>), kKeywords,
     "dim($self, /)\n--\n\nReturns the number of axes, as ndim."},
    {"zero_", keywords(without_arguments<"zero_", zero>), kKeywords,
     "zero_($self, /)\n--\n\nSets every element to 0; returns the tensor."},
};

const PyGetSetDef habit_attributes[] = {
    {"T", reversed, nullptr, "View with the axes in reverse order.", nullptr},
    {"mT", transposed, nullptr, "View with the last two axes exchanged.", nullptr},
};

}  // namespace

void add_habits(TensorParts &parts)
{
    parts.add(habit_methods);
    parts.add(habit_attributes);
}

}  // namespace yoke_python
