// index.cpp: x[…] and x[…] = y by NumPy's rules: ints, slices, None, "...", masks, integer tensors, lists and arrays;
// and the sequence protocol. A key is turned into yoke_index items.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/make.h"

#include <cstring>

namespace yoke_python {
namespace {

// Maximum of meaningful items: every axis named, every axis new, and an ellipsis.
constexpr Py_ssize_t kMaxItems = 2 * YOKE_MAX_NDIM + 1;

// Index between the brackets. Its tensors are held, since other code may run and close them.
struct Key {
    yoke_index items[kMaxItems];
    int64_t count = 0;
    int64_t bytes = 0;  // size of the tensors

    Key() = default;
    ~Key()
    {
        for (int64_t i = 0; i < count; i++)
            if (items[i].tensor) yoke_tensor_release(items[i].tensor);
    }
    Key(const Key &) = delete;
    Key &operator=(const Key &) = delete;

    bool read(PyObject *self, PyObject *value);
    bool read_item(PyObject *self, PyObject *value, yoke_index *item);
    bool read_tensor(PyObject *value, yoke_index *item);
    bool read_array(PyObject *self, PyObject *value, yoke_index *item);
};

bool read_bound(PyObject *value, int32_t flag, yoke_index *item, int64_t *to)
{
    if (value == Py_None) {
        item->flags |= flag;
        return true;
    }
    if (!PyIndex_Check(value)) {
        raise_error(YOKE_E_TYPE, "Tensor.__getitem__",
                    "a slice must have integers or None, not %.100s", Py_TYPE(value)->tp_name);
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

bool Key::read_tensor(PyObject *value, yoke_index *item)
{
    yoke_tensor *tensor = tensor_argument(value, {"Tensor.__getitem__", "index"});
    if (!tensor) return false;
    item->kind = YOKE_INDEX_TENSOR;
    item->tensor = yoke_tensor_retain(tensor);
    bytes += yoke_tensor_nbytes(tensor);
    return true;
}

// Reads nested sequences and arrays of integers or truth values as a tensor on the device of `self`. Returns false
// with the Python error set for any other object.
bool Key::read_array(PyObject *self, PyObject *value, yoke_index *item)
{
    if (!PySequence_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value)) {
        raise_error(
            YOKE_E_TYPE, "Tensor.__getitem__",
            "an index must be an int, a slice, None, ..., a mask, or a tensor, list or array of integers, not a %.100s",
            Py_TYPE(value)->tp_name);
        return false;
    }
    MakeOptions options;
    options.call = "Tensor.__getitem__";
    options.device = yoke_tensor_device(handle_of(self));
    // An empty list has no dtype of its own: no indices are integers too.
    if (PyList_Check(value) || PyTuple_Check(value)) {
        const Py_ssize_t size = PySequence_Size(value);
        if (size < 0) return false;
        if (size == 0) options.dtype = YOKE_I64;
    }
    PyObject *tensor = make_tensor(value, options);
    const bool ok = tensor && read_tensor(tensor, item);
    Py_XDECREF(tensor);
    return ok;
}

bool Key::read_item(PyObject *self, PyObject *value, yoke_index *item)
{
    if (is_tensor(value)) return read_tensor(value, item);
    if (PySlice_Check(value)) return read_slice(value, item);
    if (value == Py_None || value == Py_Ellipsis) {
        item->kind = value == Py_None ? YOKE_INDEX_NEW_AXIS : YOKE_INDEX_ELLIPSIS;
        return true;
    }
    if (is_bool(value)) {
        item->kind = YOKE_INDEX_BOOL;
        item->start = PyObject_IsTrue(value);
        return item->start >= 0;
    }
    // A sequence may have __index__ too, as NumPy's arrays of one element have.
    if (!PyIndex_Check(value) || !is_number(value)) return read_array(self, value, item);
    item->kind = YOKE_INDEX_INT;
    return to_int64(value, {"Tensor.__getitem__", "index"}, &item->start);
}

bool Key::read(PyObject *self, PyObject *value)
{
    const bool several = PyTuple_Check(value);
    const Py_ssize_t size = several ? PyTuple_GET_SIZE(value) : 1;
    if (!tensor_argument(self, {"Tensor.__getitem__", "self"})) return false;
    if (size > kMaxItems) {
        raise_error(YOKE_E_INDEX, "Tensor.__getitem__",
                    "there are %lld indices; at most %zd are allowed", static_cast<long long>(size),
                    kMaxItems);
        return false;
    }
    while (count < size) {
        yoke_index *item = &items[count];
        *item = {};
        PyObject *given = several ? PyTuple_GET_ITEM(value, static_cast<Py_ssize_t>(count)) : value;
        count++;
        if (!read_item(self, given, item)) return false;
    }
    return true;
}

// Runs `call(tensor)` on a tensor, held meanwhile; without the GIL if many bytes move or the call may wait. Returns
// false with the Python error set.
template <class Call>
bool run(PyObject *self, int64_t bytes, Call call)
{
    yoke_tensor *tensor = tensor_argument(self, {"Tensor.__getitem__", "self"});
    if (!tensor) return false;
    const Hold hold(tensor);
    const yoke_status status = with_relief([&] {
        const ReleaseGil release(bytes > kGilBytes || may_wait(tensor));
        return call(tensor);
    });
    if (status) raise_last_error();
    return status == YOKE_OK;
}

PyObject *part_of(PyObject *self, const yoke_index *items, int64_t count, int64_t bytes)
{
    yoke_tensor *out = nullptr;
    const bool ok = run(self, bytes, [&](yoke_tensor *tensor) {
        return yoke_tensor_index(tensor, items, count, &out);
    });
    return ok ? wrap_tensor(out) : nullptr;
}

// Returns the right side of x[…] = … as a tensor: a tensor unchanged, else numbers in the dtype of x.
PyObject *value_tensor(PyObject *self, PyObject *value)
{
    if (is_tensor(value)) return new_reference(value);
    MakeOptions options;
    options.call = "Tensor.__setitem__";
    options.dtype = yoke_tensor_dtype(handle_of(self));
    options.device = yoke_tensor_device(handle_of(self));
    return make_tensor(value, options);
}

bool fill(PyObject *self, const Key &key, PyObject *value)
{
    yoke_arg number;
    if (!to_scalar(value, {"Tensor.__setitem__", "value"}, &number)) return false;
    return run(self, key.bytes, [&](yoke_tensor *tensor) {
        return yoke_tensor_index_fill(tensor, key.items, key.count, &number);
    });
}

bool put(PyObject *self, const Key &key, PyObject *value)
{
    PyObject *object = value_tensor(self, value);
    yoke_tensor *values =
        object ? tensor_argument(object, {"Tensor.__setitem__", "value"}) : nullptr;
    bool ok = false;
    if (values) {
        const Hold hold(values);
        ok = run(self, key.bytes + yoke_tensor_nbytes(values), [&](yoke_tensor *tensor) {
            return yoke_tensor_index_put(tensor, key.items, key.count, values);
        });
    }
    Py_XDECREF(object);
    return ok;
}

PyObject *subscript(PyObject *self, PyObject *value)
{
    Key key;
    return key.read(self, value) ? part_of(self, key.items, key.count, key.bytes) : nullptr;
}

int assign(PyObject *self, PyObject *key, PyObject *value)
{
    if (!value) {
        raise_error(YOKE_E_TYPE, "Tensor.__delitem__", "elements of a tensor cannot be deleted");
        return -1;
    }
    Key items;
    if (!items.read(self, key)) return -1;
    return (is_number(value) ? fill(self, items, value) : put(self, items, value)) ? 0 : -1;
}

PyObject *element_at(PyObject *self, Py_ssize_t position)
{
    const yoke_index item = {YOKE_INDEX_INT, 0, position, 0, 0, nullptr};
    return part_of(self, &item, 1, 0);
}

Py_ssize_t length_of(PyObject *self)
{
    yoke_tensor *tensor = tensor_argument(self, {"len", "self"});
    if (!tensor) return -1;
    if (yoke_tensor_ndim(tensor) > 0) return static_cast<Py_ssize_t>(yoke_tensor_shape(tensor)[0]);
    raise_error(YOKE_E_TYPE, "len", "a tensor without axes has no length");
    return -1;
}

PyObject *iterate(PyObject *self)
{
    return length_of(self) < 0 ? nullptr : PySeqIter_New(self);
}

const PyType_Slot index_slots[] = {
    {Py_tp_iter, slot(iterate)},        {Py_sq_length, slot(length_of)},
    {Py_sq_item, slot(element_at)},     {Py_mp_length, slot(length_of)},
    {Py_mp_subscript, slot(subscript)}, {Py_mp_ass_subscript, slot(assign)},
};

}  // namespace

void add_index(TensorParts &parts)
{
    parts.add(index_slots);
}

}  // namespace yoke_python
