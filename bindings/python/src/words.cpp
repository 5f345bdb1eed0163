// words.cpp: PyTorch's words for what a tensor does under another name: x.data, x.t(), x.new_zeros(2), x.type_as(y).
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/other_names.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/device.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/elements.h"
#include "bindings/python/src/values/invoke.h"
#include "bindings/python/src/values/make.h"
#include "bindings/python/src/values/op_spec.h"

#include "yoke/autograd.h"
#include "yoke/device.h"

#include <cstring>
#include <string>
#include <vector>

namespace yoke_python {
namespace {

PyObject *data(PyObject *self, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"data", "self"});
    yoke_tensor *out = nullptr;
    if (!tensor) return nullptr;
    return yoke_tensor_detach(tensor, &out) ? raise_last_error("data") : wrap_tensor(out);
}

int set_data(PyObject *self, PyObject *value, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"data", "self"});
    if (!tensor) return -1;
    if (!value) {
        raise_error(YOKE_E_TYPE, "data", "the attribute cannot be deleted");
        return -1;
    }
    yoke_tensor *source = tensor_argument(value, {"data", "data"});
    if (!source) return -1;
    return yoke_tensor_set_data(tensor, source) ? (raise_last_error("data"), -1) : 0;
}

PyObject *is_cuda(PyObject *self, void *)
{
    yoke_tensor *tensor = tensor_argument(self, {"is_cuda", "self"});
    return tensor ? PyBool_FromLong(
                        std::strcmp(yoke_device_kind(yoke_tensor_device(tensor)), "cuda") == 0)
                  : nullptr;
}

PyObject *transposed(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"t", "self"});
    if (!tensor) return nullptr;
    const int64_t ndim = yoke_tensor_ndim(tensor);
    if (ndim > 2)
        return raise_error(
            YOKE_E_VALUE, "t",
            "the tensor has %lld axes; it must have at most two; write x.mT, or x.transpose(-2, -1)",
            static_cast<long long>(ndim));
    if (ndim < 2) return new_reference(self);
    PyObject *axes[2] = {PyLong_FromLong(0), PyLong_FromLong(1)};
    PyObject *result = axes[0] && axes[1] ? invoke(kOp_transpose, self, axes, 2, nullptr) : nullptr;
    Py_XDECREF(axes[0]);
    Py_XDECREF(axes[1]);
    return result;
}

template <yoke_dtype kDtype>
PyObject *as_dtype(PyObject *self, PyObject *)
{
    return move_tensor(self, nullptr, kDtype, false);
}

PyObject *short_integers(PyObject *, PyObject *)
{
    return raise_error(YOKE_E_UNSUPPORTED, "short",
                       "Yoke has no dtype int16; write x.int() for int32, or x.char() for int8");
}

PyObject *element_count(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"nelement", "self"});
    return tensor ? PyLong_FromLongLong(yoke_tensor_numel(tensor)) : nullptr;
}

PyObject *element_size(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"element_size", "self"});
    return tensor ? PyLong_FromLongLong(yoke_tensor_itemsize(tensor)) : nullptr;
}

PyObject *is_floating_point(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"is_floating_point", "self"});
    return tensor ? PyBool_FromLong(is_floating(yoke_tensor_dtype(tensor))) : nullptr;
}

PyObject *stride(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"axis"};
    PyObject *values[1] = {Py_None};
    yoke_tensor *tensor = tensor_argument(self, {"stride", "self"});
    if (!tensor || !read_parameters("stride", kNames, 1, 0, args, count, keywords, values))
        return nullptr;
    const Hold hold(tensor);
    const int64_t ndim = yoke_tensor_ndim(tensor);
    int64_t axis = 0;
    if (values[0] == Py_None) return int_tuple(yoke_tensor_strides(tensor), ndim);
    if (!to_int64(values[0], {"stride", "axis"}, &axis)) return nullptr;
    if (axis < -ndim || axis >= ndim)
        return raise_error(YOKE_E_INDEX, "stride",
                           "axis %lld is out of range for a tensor of %lld axes",
                           static_cast<long long>(axis), static_cast<long long>(ndim));
    return PyLong_FromLongLong(yoke_tensor_strides(tensor)[axis < 0 ? axis + ndim : axis]);
}

// Calls a function of yoke._types with the tensor and the arguments of the call.
PyObject *type(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"dtype"};
    PyObject *values[1] = {Py_None};
    if (!tensor_argument(self, {"type", "self"}) ||
        !read_parameters("type", kNames, 1, 0, args, count, keywords, values))
        return nullptr;
    PyObject *module = PyImport_ImportModule("yoke._types");
    PyObject *result =
        module ? PyObject_CallMethod(module, "tensor_type", "OO", self, values[0]) : nullptr;
    Py_XDECREF(module);
    return result;
}

PyObject *type_as(PyObject *self, PyObject *other)
{
    yoke_tensor *like = tensor_argument(other, {"type_as", "other"});
    return like ? move_tensor(self, yoke_tensor_device(like), yoke_tensor_dtype(like), false)
                : nullptr;
}

// Calls kOp with the shape of another tensor.
template <OpPlace kOp>
PyObject *shaped_as(PyObject *self, PyObject *other)
{
    yoke_tensor *like = tensor_argument(other, {op_name(kOp), "other"});
    PyObject *shape = like ? int_tuple(yoke_tensor_shape(like), yoke_tensor_ndim(like)) : nullptr;
    PyObject *result = shape ? invoke(kOp, self, &shape, 1, nullptr) : nullptr;
    Py_XDECREF(shape);
    return result;
}

PyObject *repeat(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static OpSpec spec = under_name(kOp_tile, "repeat");
    return invoke_named(spec, self, args, count, keywords);
}

// Arguments of a call that makes a tensor, with the dtype and device of another tensor where the call gives none.
class LikeArguments {
public:
    LikeArguments(yoke_tensor *like, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
        : values_(args, args + count + (keywords ? PyTuple_GET_SIZE(keywords) : 0)),
          given_(keywords)
    {
        add("dtype", dtype_object(yoke_tensor_dtype(like)));
        add("device", device_object(yoke_tensor_device(like)));
    }
    ~LikeArguments()
    {
        for (PyObject *each : own_) Py_XDECREF(each);
        Py_XDECREF(names_);
    }
    LikeArguments(const LikeArguments &) = delete;
    LikeArguments &operator=(const LikeArguments &) = delete;

    // Returns the names of the keywords; null with an error set.
    PyObject *keywords()
    {
        const Py_ssize_t before = given_ ? PyTuple_GET_SIZE(given_) : 0;
        if (PyErr_Occurred()) return nullptr;
        names_ = PyTuple_New(before + static_cast<Py_ssize_t>(added_.size()));
        if (!names_) return nullptr;
        for (Py_ssize_t i = 0; i < before; i++)
            PyTuple_SET_ITEM(names_, i, new_reference(PyTuple_GET_ITEM(given_, i)));
        for (size_t i = 0; i < added_.size(); i++) {
            PyObject *name = PyUnicode_InternFromString(added_[i]);
            if (!name) return nullptr;
            PyTuple_SET_ITEM(names_, before + static_cast<Py_ssize_t>(i), name);
        }
        return names_;
    }
    PyObject *const *values() const { return values_.data(); }

private:
    void add(const char *name, PyObject *value)
    {
        own_.push_back(value);
        for (Py_ssize_t i = 0; given_ && i < PyTuple_GET_SIZE(given_); i++)
            if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(given_, i), name) == 0) return;
        added_.push_back(name);
        values_.push_back(value);
    }

    std::vector<PyObject *> values_;
    PyObject *given_;
    std::vector<PyObject *> own_;
    std::vector<const char *> added_;
    PyObject *names_ = nullptr;
};

template <OpPlace kOp>
PyObject *new_like(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const std::string name = std::string("new_") + op_name(kOp);
    static OpSpec spec = under_name(kOp, name.c_str());
    yoke_tensor *tensor = tensor_argument(self, {spec.name, "self"});
    if (!tensor) return nullptr;
    LikeArguments all(tensor, args, count, keywords);
    PyObject *names = all.keywords();
    return names ? invoke_named(spec, nullptr, all.values(), count, names) : nullptr;
}

PyObject *new_tensor(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    yoke_tensor *tensor = tensor_argument(self, {"new_tensor", "self"});
    if (!tensor) return nullptr;
    LikeArguments all(tensor, args, count, keywords);
    PyObject *names = all.keywords();
    return names ? tensor_function(nullptr, all.values(), count, names) : nullptr;
}

// Returns the names of attributes that are there: a name of PyTorch that only raises is none.
PyObject *names(PyObject *self, PyObject *)
{
    PyObject *all =
        PyObject_CallMethod(reinterpret_cast<PyObject *>(&PyBaseObject_Type), "__dir__", "O", self);
    for (Py_ssize_t i = all && PyList_Check(all) ? PyList_GET_SIZE(all) : 0; i-- > 0;) {
        const char *name = PyUnicode_AsUTF8(PyList_GET_ITEM(all, i));
        if (name && foreign_name("tensor", name) && !PyObject_HasAttrString(self, name))
            PySequence_DelItem(all, i);
    }
    return all;
}

const PyMethodDef word_methods[] = {
    {"__dir__", names, METH_NOARGS,
     "__dir__($self, /)\n--\n\nReturns the names of the attributes."},
    {"t", keywords(without_arguments<"t", transposed>), kKeywords,
     "t($self, /)\n--\n\nReturns a matrix with its axes exchanged, as a view; a tensor of fewer axes itself."},
    {"byte", keywords(without_arguments<"byte", as_dtype<YOKE_U8>>), kKeywords,
     "byte($self, /)\n--\n\nReturns to(yoke.uint8)."},
    {"char", keywords(without_arguments<"char", as_dtype<YOKE_I8>>), kKeywords,
     "char($self, /)\n--\n\nReturns to(yoke.int8)."},
    {"short", keywords(without_arguments<"short", short_integers>), kKeywords,
     "short($self, /)\n--\n\nRaises UnsupportedError: there is no int16."},
    {"nelement", keywords(without_arguments<"nelement", element_count>), kKeywords,
     "nelement($self, /)\n--\n\nReturns the number of elements, as numel."},
    {"element_size", keywords(without_arguments<"element_size", element_size>), kKeywords,
     "element_size($self, /)\n--\n\nReturns the bytes of one element, as itemsize."},
    {"is_floating_point", keywords(without_arguments<"is_floating_point", is_floating_point>),
     kKeywords, "is_floating_point($self, /)\n--\n\nReturns whether the dtype has fractions."},
    {"stride", keywords(stride), kKeywords,
     "stride($self, /, axis=None)\n--\n\nReturns the strides, or the stride of one axis."},
    {"type", keywords(type), kKeywords,
     "type($self, /, dtype=None)\n--\n\n"
     "Returns to(dtype); without a dtype, PyTorch's name of the type: \"yoke.FloatTensor\"."},
    {"type_as", keywords(with_argument<"type_as", "other", type_as>), kKeywords,
     "type_as($self, /, other)\n--\n\nReturns the tensor with the dtype and on the device of another."},
    {"expand_as", keywords(with_argument<"expand_as", "other", shaped_as<kOp_expand>>), kKeywords,
     "expand_as($self, /, other)\n--\n\nReturns expand(other.shape)."},
    {"view_as", keywords(with_argument<"view_as", "other", shaped_as<kOp_view>>), kKeywords,
     "view_as($self, /, other)\n--\n\nReturns view(other.shape)."},
    {"reshape_as", keywords(with_argument<"reshape_as", "other", shaped_as<kOp_reshape>>),
     kKeywords, "reshape_as($self, /, other)\n--\n\nReturns reshape(other.shape)."},
    {"repeat", keywords(repeat), kKeywords, "repeat($self, /, reps)\n--\n\nReturns tile(reps)."},
    {"new_zeros", keywords(new_like<kOp_zeros>), kKeywords,
     "new_zeros($self, /, shape, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns zeros with the dtype and device of this tensor, if no other is given."},
    {"new_ones", keywords(new_like<kOp_ones>), kKeywords,
     "new_ones($self, /, shape, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns ones with the dtype and device of this tensor, if no other is given."},
    {"new_empty", keywords(new_like<kOp_empty>), kKeywords,
     "new_empty($self, /, shape, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns a tensor whose values are not set, with the dtype and device of this tensor, if no other is given."},
    {"new_full", keywords(new_like<kOp_full>), kKeywords,
     "new_full($self, /, shape, value, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns a tensor of one value with the dtype and device of this tensor, if no other is given."},
    {"new_tensor", keywords(new_tensor), kKeywords,
     "new_tensor($self, /, data, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns tensor(data) with the dtype and device of this tensor, if no other is given."},
};

const PyGetSetDef word_attributes[] = {
    {"data", data, set_data,
     "The tensor without its record. A leaf takes over the memory of an assigned tensor, and stays the same object.",
     nullptr},
    {"is_cuda", is_cuda, nullptr, "True for a tensor on a CUDA device.", nullptr},
};

}  // namespace

void add_words(TensorParts &parts)
{
    parts.add(word_methods);
    parts.add(word_attributes);
}

}  // namespace yoke_python
