// index.cpp: x[…] and x[…] = y by NumPy's rules for ints, slices, None and "...", and the sequence
// protocol. A key is turned into yoke_index items; masks and arrays of indices are refused by name.
#include "convert.h"
#include "invoke.h"
#include "make.h"

namespace yoke_python {
namespace {

// The most items that can mean something: every axis named, every axis new, one ellipsis.
constexpr Py_ssize_t kMaxItems = 2 * YOKE_MAX_NDIM + 1;

struct Key {
    yoke_index items[kMaxItems];
    int64_t count = 0;
};

bool read_bound(PyObject *value, int32_t flag, yoke_index *item, int64_t *to)
{
    if (value == Py_None) {
        item->flags |= flag;
        return true;
    }
    if (!PyIndex_Check(value)) {
        raise_error(YOKE_E_TYPE, "Tensor.__getitem__",
                    "a slice is made of integers or None, not %.100s", Py_TYPE(value)->tp_name);
        return false;
    }
    *to = PyNumber_AsSsize_t(value, nullptr);  // far out of range is the end, as for lists
    return !(*to == -1 && PyErr_Occurred());
}

bool read_slice(PyObject *value, yoke_index *item)
{
    auto *slice = reinterpret_cast<PySliceObject *>(value);
    item->kind = YOKE_INDEX_SLICE;
    return read_bound(slice->start, YOKE_INDEX_NO_START, item, &item->start) &&
           read_bound(slice->stop, YOKE_INDEX_NO_STOP, item, &item->stop) &&
           read_bound(slice->step, YOKE_INDEX_NO_STEP, item, &item->step);
}

bool refuse(PyObject *value)
{
    const bool advanced = is_tensor(value) || PyBool_Check(value) || PySequence_Check(value);
    if (advanced && !PyUnicode_Check(value))
        raise_error(
            YOKE_E_UNSUPPORTED, "Tensor.__getitem__",
            "indexing with a %.100s (a mask or a list of indices) is not supported; index with "
            "ints, slices, None and ..., or go through x.numpy()",
            Py_TYPE(value)->tp_name);
    else
        raise_error(YOKE_E_TYPE, "Tensor.__getitem__",
                    "a tensor is indexed with ints, slices, None and ..., not with a %.100s",
                    Py_TYPE(value)->tp_name);
    return false;
}

bool read_item(PyObject *value, yoke_index *item)
{
    if (PySlice_Check(value)) return read_slice(value, item);
    if (value == Py_None || value == Py_Ellipsis) {
        item->kind = value == Py_None ? YOKE_INDEX_NEW_AXIS : YOKE_INDEX_ELLIPSIS;
        return true;
    }
    // A sequence may have __index__ too, as NumPy's arrays of one element have.
    if (PyBool_Check(value) || !PyIndex_Check(value) || !is_number(value)) return refuse(value);
    item->kind = YOKE_INDEX_INT;
    return to_int64(value, {"Tensor.__getitem__", "index"}, &item->start);
}

bool read_key(PyObject *value, Key *key)
{
    const bool several = PyTuple_Check(value);
    key->count = several ? PyTuple_GET_SIZE(value) : 1;
    if (key->count > kMaxItems) {
        raise_error(YOKE_E_INDEX, "Tensor.__getitem__",
                    "%lld indices are more than the %zd that a tensor takes",
                    static_cast<long long>(key->count), kMaxItems);
        return false;
    }
    for (int64_t i = 0; i < key->count; i++) {
        key->items[i] = {};
        PyObject *item = several ? PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(i)) : value;
        if (!read_item(item, &key->items[i])) return false;
    }
    return true;
}

PyObject *view_of(PyObject *self, const yoke_index *items, int64_t count)
{
    yoke_tensor *tensor = tensor_argument(self, {"Tensor.__getitem__", "self"});
    yoke_tensor *out = nullptr;
    if (!tensor) return nullptr;
    if (yoke_tensor_index(tensor, items, count, &out)) return raise_last_error();
    return wrap_tensor(out);
}

// What stands right of x[…] = …, as a tensor: one that is, or numbers in the dtype of x.
PyObject *value_tensor(PyObject *self, PyObject *value)
{
    if (is_tensor(value)) return new_reference(value);
    MakeOptions options;
    options.call = "Tensor.__setitem__";
    options.dtype = yoke_tensor_dtype(handle_of(self));
    options.device = yoke_tensor_device(handle_of(self));
    return make_tensor(value, options);
}

bool write(PyObject *self, PyObject *view, PyObject *value)
{
    PyObject *done = nullptr;
    if (is_number(value)) {
        done = invoke(kOp_fill_, view, &value, 1, nullptr);
    } else if (PyObject *tensor = value_tensor(self, value)) {
        done = invoke(kOp_copy_, view, &tensor, 1, nullptr);
        Py_DECREF(tensor);
    }
    Py_XDECREF(done);
    return done != nullptr;
}

}  // namespace

PyObject *tensor_subscript(PyObject *self, PyObject *value)
{
    Key key;
    return read_key(value, &key) ? view_of(self, key.items, key.count) : nullptr;
}

int tensor_assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) {
        raise_error(YOKE_E_TYPE, "Tensor.__delitem__", "elements of a tensor cannot be deleted");
        return -1;
    }
    PyObject *view = tensor_subscript(self, key);
    if (!view) return -1;
    const bool ok = write(self, view, value);
    Py_DECREF(view);
    return ok ? 0 : -1;
}

PyObject *tensor_get(PyObject *self, Py_ssize_t position)
{
    const yoke_index item = {YOKE_INDEX_INT, 0, position, 0, 0};
    return view_of(self, &item, 1);
}

Py_ssize_t tensor_length(PyObject *self)
{
    yoke_tensor *tensor = tensor_argument(self, {"len", "self"});
    if (!tensor) return -1;
    if (yoke_tensor_ndim(tensor) > 0) return static_cast<Py_ssize_t>(yoke_tensor_shape(tensor)[0]);
    raise_error(YOKE_E_TYPE, "len", "a tensor of no axes has no length");
    return -1;
}

PyObject *tensor_iterate(PyObject *self)
{
    return tensor_length(self) < 0 ? nullptr : PySeqIter_New(self);
}

}  // namespace yoke_python
