// make_list.cpp: nested sequences of Python numbers to the elements of a tensor.
//
// Twice over the data: once for shape and kind of number, once to write them. Both name the place of
// what is wrong: data[2][0].
#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/dtypes.inc"
#include "bindings/python/src/values/make.h"
#include "bindings/python/src/values/numbers.h"

#include "yoke/engines.h"

#include <type_traits>
#include <vector>

namespace yoke_python {
namespace {

// A bool element: a vector of C++'s own bool has no elements in memory.
struct Truth {
    uint8_t on;
};

enum class Kind { kNothing, kBool, kInt, kFloat };

// Place in the nest, for messages.
struct Path {
    const char *call;
    int64_t at[YOKE_MAX_NDIM];
    int depth = 0;
};

// Returns the path in words, "data[2][0]"; the caller owns the text.
PyObject *describe(const Path &path)
{
    PyObject *text = PyUnicode_FromString("data");
    for (int i = 0; text && i < path.depth; i++) {
        PyObject *longer =
            PyUnicode_FromFormat("%U[%lld]", text, static_cast<long long>(path.at[i]));
        Py_DECREF(text);
        text = longer;
    }
    return text;
}

bool complain(yoke_status status, const Path &path, const char *format, PyObject *value)
{
    PyObject *place = describe(path);
    PyObject *what = place ? PyUnicode_FromFormat(format, value) : nullptr;
    if (what) raise_error(status, path.call, "%U %U", place, what);
    Py_XDECREF(place);
    Py_XDECREF(what);
    return false;
}

bool is_nest(PyObject *value)
{
    if (PyList_Check(value) || PyTuple_Check(value)) return true;
    return PySequence_Check(value) && !PyUnicode_Check(value) && !is_tensor(value) &&
           !is_number(value);
}

// Returns a number unchanged, and a tensor of a single element as a number: a new reference, null with an error set.
PyObject *number_at(PyObject *value, const Path &path)
{
    if (is_tensor(value)) {
        yoke_tensor *tensor = tensor_argument(value, {path.call, "data"});
        if (!tensor) return nullptr;
        if (yoke_tensor_numel(tensor) == 1) return tensor_item(value);
        complain(YOKE_E_TYPE, path,
                 "is a %R of several elements; join tensors with yoke.cat or yoke.stack",
                 reinterpret_cast<PyObject *>(Py_TYPE(value)));
        return nullptr;
    }
    if (is_number(value)) return new_reference(value);
    complain(YOKE_E_TYPE, path, "is not a number: %R", value);
    return nullptr;
}

class ListReader {
public:
    explicit ListReader(const char *call) { path_.call = call; }

    // Makes the first pass: finds shape and kind. Returns false with an error set.
    bool measure(PyObject *data);
    // Makes the second pass: writes the elements as T, row-major. Returns false with an error set.
    template <class T>
    bool write(PyObject *data, std::vector<T> *out);

    std::vector<int64_t> shape;
    Kind kind = Kind::kNothing;

private:
    bool measure_nest(PyObject *data, bool first);
    bool measure_number(PyObject *data);
    bool check_length(int64_t length, bool first);
    template <class T>
    bool write_number(PyObject *data, std::vector<T> *out);

    Path path_;
};

// Returns the items of a sequence as a tuple or list; a list or tuple is returned itself.
PyObject *items_of(PyObject *data)
{
    return PySequence_Fast(data, "a sequence of numbers is needed");
}

bool ListReader::check_length(int64_t length, bool first)
{
    const auto depth = static_cast<size_t>(path_.depth);
    if (first) {
        if (depth < YOKE_MAX_NDIM) return shape.push_back(length), true;
        raise_error(YOKE_E_VALUE, path_.call,
                    "argument 'data' is nested more than %d deep; it must have fewer levels",
                    YOKE_MAX_NDIM);
        return false;
    }
    PyObject *place = describe(path_);
    bool same = false;
    if (place && depth >= shape.size())
        raise_error(YOKE_E_VALUE, path_.call,
                    "the lists are ragged: %U has %lld items, but items before it are numbers",
                    place, static_cast<long long>(length));
    else if (place && !(same = length == shape[depth]))
        raise_error(YOKE_E_VALUE, path_.call,
                    "the lists are ragged: %U has %lld items, but lists before it have %lld", place,
                    static_cast<long long>(length), static_cast<long long>(shape[depth]));
    Py_XDECREF(place);
    return same;
}

bool ListReader::measure_number(PyObject *data)
{
    if (static_cast<size_t>(path_.depth) < shape.size())
        return complain(YOKE_E_VALUE, path_,
                        "is a number, but items before it are lists: the lists are ragged (%R)",
                        data);
    PyObject *number = number_at(data, path_);
    yoke_arg scalar{};
    const bool ok = number && to_scalar(number, {path_.call, "data"}, &scalar);
    Py_XDECREF(number);
    if (!ok) return false;
    const Kind found = scalar.kind == YOKE_ARG_BOOL  ? Kind::kBool
                       : scalar.kind == YOKE_ARG_INT ? Kind::kInt
                                                     : Kind::kFloat;
    kind = kind < found ? found : kind;
    return true;
}

// Measures a nest and the nests in it. `first`: the path of first items, which sets the shape.
bool ListReader::measure_nest(PyObject *data, bool first)
{
    if (!is_nest(data)) return measure_number(data);
    PyObject *items = items_of(data);
    if (!items) return false;
    bool ok = check_length(PySequence_Fast_GET_SIZE(items), first);
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(items); i++) {
        path_.at[path_.depth++] = i;
        PyObject *item = new_reference(PySequence_Fast_GET_ITEM(items, i));
        ok = measure_nest(item, first && i == 0);
        Py_DECREF(item);
        path_.depth--;
    }
    Py_DECREF(items);
    return ok;
}

bool ListReader::measure(PyObject *data)
{
    return measure_nest(data, true);
}

// Reads a number of Python as T. Returns false if T cannot hold the number, or with an error set if it cannot be
// read.
template <class T>
bool fits(PyObject *number, T *out)
{
    if constexpr (std::is_floating_point_v<T>) {
        *out = static_cast<T>(PyFloat_AsDouble(number));
        if (!(*out == T(-1) && PyErr_Occurred())) return true;
        // An int may lie beyond a float; an error of another type's __float__ comes out as it is.
        if (PyLong_Check(number) && PyErr_ExceptionMatches(PyExc_OverflowError)) PyErr_Clear();
        return false;
    } else {
        if (!PyIndex_Check(number)) {  // floats are truncated; other types are refused
            const double value = PyFloat_AsDouble(number);
            if (value == -1 && PyErr_Occurred()) return false;
            if (!(value >= -9.2e18 && value <= 9.2e18)) return false;
            const auto cut = static_cast<int64_t>(value);
            *out = static_cast<T>(cut);
            return *out == cut;
        }
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
        *out = static_cast<T>(value);
        return !overflow && *out == value && !(value == -1 && PyErr_Occurred());
    }
}

template <class T>
bool ListReader::write_number(PyObject *data, std::vector<T> *out)
{
    PyObject *number = number_at(data, path_);
    T value{};
    if (!number) return false;
    bool ok = true;
    if constexpr (std::is_same_v<T, Truth>) {
        const int truth = PyObject_IsTrue(number);
        value.on = truth > 0;
        ok = truth >= 0;
    } else {
        ok = fits(number, &value);
        if (!ok && !PyErr_Occurred()) {
            complain(YOKE_E_VALUE, path_, "is out of the range of the dtype: %R", number);
        }
    }
    Py_DECREF(number);
    if (ok) out->push_back(value);
    return ok;
}

template <class T>
bool ListReader::write(PyObject *data, std::vector<T> *out)
{
    if (!is_nest(data)) return write_number(data, out);
    if (path_.depth == static_cast<int>(shape.size()))
        return complain(YOKE_E_VALUE, path_, "changed while it was read: %R", data);
    PyObject *items = items_of(data);
    bool ok = items != nullptr;
    for (Py_ssize_t i = 0; ok && i < PySequence_Fast_GET_SIZE(items); i++) {
        path_.at[path_.depth++] = i;
        PyObject *item = new_reference(PySequence_Fast_GET_ITEM(items, i));
        ok = write(item, out);
        Py_DECREF(item);
        path_.depth--;
    }
    Py_XDECREF(items);
    return ok;
}

template <class T>
yoke_tensor *build(ListReader &reader, PyObject *data, yoke_dtype dtype, const MakeOptions &options,
                   yoke_device *device)
{
    std::vector<T> elements;
    int64_t count = 1;
    for (const int64_t length : reader.shape) count *= length;
    elements.reserve(static_cast<size_t>(count));
    if (!reader.write(data, &elements)) return nullptr;
    if (static_cast<int64_t>(elements.size()) != count) {
        raise_error(
            YOKE_E_VALUE, options.call,
            "argument 'data' changed while it was read; it must stay the same during the call");
        return nullptr;
    }
    yoke_tensor *out = nullptr;
    const yoke_status status = with_relief([&] {
        return yoke_tensor_from_data(elements.data(), count * static_cast<int64_t>(sizeof(T)),
                                     reader.shape.data(), static_cast<int64_t>(reader.shape.size()),
                                     dtype, device, &out);
    });
    if (status) raise_last_error();
    return out;
}

// Builds a tensor of halves through float64: float64 has every Python float, so a half is rounded from it once.
yoke_tensor *build_half(ListReader &reader, PyObject *data, yoke_dtype dtype,
                        const MakeOptions &options, yoke_device *device)
{
    yoke_tensor *wide = build<double>(reader, data, YOKE_F64, options, device);
    yoke_tensor *out = nullptr;
    if (!wide) return nullptr;
    if (yoke_tensor_to(wide, nullptr, dtype, &out)) raise_last_error();
    yoke_tensor_release(wide);
    return out;
}

yoke_dtype natural_dtype(Kind kind)
{
    return kind == Kind::kBool  ? YOKE_BOOL
           : kind == Kind::kInt ? YOKE_I64
                                : yoke_get_default_dtype();
}

}  // namespace

yoke_tensor *tensor_from_numbers(PyObject *data, const MakeOptions &options, yoke_device *device)
{
    ListReader reader(options.call);
    if (!reader.measure(data)) return nullptr;
    const yoke_dtype dtype = options.dtype ? options.dtype : natural_dtype(reader.kind);
    switch (dtype) {
#define YOKE_NATIVE(value, type) \
    case value:                  \
        return build<type>(reader, data, dtype, options, device);
        YOKE_PY_NATIVE_DTYPES(YOKE_NATIVE)
#undef YOKE_NATIVE
        case YOKE_BOOL:
            return build<Truth>(reader, data, dtype, options, device);
        default:
            return build_half(reader, data, dtype, options, device);
    }
}

}  // namespace yoke_python
