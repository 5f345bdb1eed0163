#include "bindings/python/src/values/convert.h"

#include "bindings/python/src/values/device.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/tensor.h"

#include "yoke/device.h"
#include "yoke/runtime.h"

#include <cstring>

namespace yoke_python {
namespace {

bool is_list(PyObject *value)
{
    return PyList_Check(value) || PyTuple_Check(value);
}

bool has_length(PyObject *value)
{
    const PyTypeObject *type = Py_TYPE(value);
    return (type->tp_as_sequence && type->tp_as_sequence->sq_length) ||
           (type->tp_as_mapping && type->tp_as_mapping->mp_length);
}

// Returns whether a NumPy scalar would lose a part as a float: its imaginary part, or its unit.
bool is_no_real(PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;
    for (const char *other :
         {"numpy.complex", "numpy.clongdouble", "numpy.datetime64", "numpy.timedelta64"})
        if (std::strncmp(name, other, std::strlen(other)) == 0) return true;
    return false;
}

bool open_spec(PyObject *value, const Place &place, yoke_device **out)
{
    const char *spec = nullptr;
    if (!to_text(value, place, &spec)) return false;
    yoke_status status;
    {
        const ReleaseGil release;  // the first look at the devices may take a while
        status = yoke_device_open(spec, out);
    }
    if (status) return raise_last_error() != nullptr;
    yoke_device_release(*out);
    return true;
}

// Whether values are read as in PyTorch, and the card that "cuda" means in this thread.
bool reads_foreign = false;
thread_local int32_t foreign_card = 0;

// Returns the dtype that one of Python's types means in PyTorch; YOKE_NONE for another value.
yoke_dtype dtype_of_type(PyObject *value)
{
    const auto is = [value](PyTypeObject &type) {
        return value == reinterpret_cast<PyObject *>(&type);
    };
    return is(PyFloat_Type)  ? YOKE_F64
           : is(PyLong_Type) ? YOKE_I64
           : is(PyBool_Type) ? YOKE_BOOL
                             : YOKE_NONE;
}

bool open_card(int64_t index, yoke_device **out)
{
    if (yoke_device_get("cuda", static_cast<int32_t>(index), out))
        return raise_last_error() != nullptr;
    yoke_device_release(*out);
    return true;
}

bool open_index(PyObject *value, const Place &place, yoke_device **out)
{
    int64_t index = 0;
    yoke_device *current = nullptr;
    if (!to_int64(value, place, &index)) return false;
    if (index < 0 || index > INT32_MAX) {
        raise_error(YOKE_E_INDEX, place.call, "argument '%s' is device %lld; indices count from 0",
                    place.argument, static_cast<long long>(index));
        return false;
    }
    if (reads_foreign) return open_card(index, out);
    if (yoke_current_device(&current)) return raise_last_error() != nullptr;
    const yoke_status status =
        yoke_device_get(yoke_device_kind(current), static_cast<int32_t>(index), out);
    yoke_device_release(current);
    if (status) return raise_last_error() != nullptr;
    yoke_device_release(*out);
    return true;
}

}  // namespace

bool to_int64(PyObject *value, const Place &place, int64_t *out)
{
    if (!PyIndex_Check(value)) return raise_type(place, "an integer", value) != nullptr;
    PyObject *number = PyNumber_Index(value);
    if (!number) return false;
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow)
        raise_error(YOKE_E_VALUE, place.call,
                    "argument '%s' is %R; it must fit in a 64-bit integer", place.argument, number);
    Py_DECREF(number);
    return !overflow && !(*out == -1 && PyErr_Occurred());
}

bool to_double(PyObject *value, const Place &place, double *out)
{
    if (PyFloat_Check(value)) {
        *out = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (!is_number(value)) return raise_type(place, "a number", value) != nullptr;
    *out = PyFloat_AsDouble(value);
    if (*out != -1.0 || !PyErr_Occurred()) return true;
    // The int is too large; any other error, such as a foreign __float__'s, is raised unchanged.
    if (PyLong_Check(value) && PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        raise_error(YOKE_E_VALUE, place.call, "argument '%s' is %R; it must fit in a float",
                    place.argument, value);
    }
    return false;
}

bool is_bool(PyObject *value)
{
    const char *name = Py_TYPE(value)->tp_name;
    return PyBool_Check(value) || std::strcmp(name, "numpy.bool_") == 0 ||
           std::strcmp(name, "numpy.bool") == 0;
}

bool to_bool(PyObject *value, const Place &place, int32_t *out)
{
    // An object's truth would also take a stray list or string: only what is meant as a truth value.
    if (!is_bool(value) && !PyLong_Check(value))
        return raise_type(place, "a bool", value) != nullptr;
    *out = PyObject_IsTrue(value);
    return *out >= 0;
}

bool to_text(PyObject *value, const Place &place, const char **out)
{
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(value)) return raise_type(place, "a str", value) != nullptr;
    *out = PyUnicode_AsUTF8AndSize(value, &length);
    if (*out && static_cast<size_t>(length) == std::strlen(*out)) return true;
    if (!*out && !PyErr_ExceptionMatches(PyExc_UnicodeError)) return false;
    PyErr_Clear();
    raise_error(YOKE_E_VALUE, place.call,
                "argument '%s' is %R, which is not valid text; it must be UTF-8 without NUL",
                place.argument, value);
    return false;
}

bool to_dtype(PyObject *value, const Place &place, yoke_dtype *out)
{
    *out = YOKE_NONE;
    if (value == Py_None || dtype_number(value, out)) return true;
    if (reads_foreign && PyType_Check(value)) *out = dtype_of_type(value);
    if (*out != YOKE_NONE) return true;
    if (!PyUnicode_Check(value))
        return raise_type(place, "a dtype such as yoke.float32, or its name", value) != nullptr;
    const char *name = nullptr;
    if (!to_text(value, place, &name)) return false;
    if (yoke_dtype_from_name(name, out) == YOKE_OK) return true;
    const size_t before =
        std::strlen("dtype_from_name: ") + std::strlen("argument 'name'");  // for C
    return raise_error(YOKE_E_VALUE, place.call, "argument '%s'%s", place.argument,
                       yoke_last_error()->message + before) != nullptr;
}

bool is_number(PyObject *value)
{
    if (PyFloat_Check(value) || PyLong_Check(value)) return true;
    const PyNumberMethods *methods = Py_TYPE(value)->tp_as_number;
    return methods && (methods->nb_float || methods->nb_index) && !has_length(value) &&
           !PyUnicode_Check(value) && !is_no_real(value);
}

bool to_scalar(PyObject *value, const Place &place, yoke_arg *out)
{
    out->count = 0;
    if (PyFloat_Check(value)) {
        out->kind = YOKE_ARG_FLOAT;
        out->v.f = PyFloat_AS_DOUBLE(value);
        return true;
    }
    if (is_bool(value)) {
        out->kind = YOKE_ARG_BOOL;
        out->v.i = PyObject_IsTrue(value);
        return out->v.i >= 0;
    }
    if (!is_number(value)) return raise_type(place, "a number", value) != nullptr;
    if (PyIndex_Check(value)) {
        out->kind = YOKE_ARG_INT;
        return to_int64(value, place, &out->v.i);
    }
    out->kind = YOKE_ARG_FLOAT;
    return to_double(value, place, &out->v.f);
}

bool is_lone_int(PyObject *value)
{
    return PyIndex_Check(value) && !is_tensor(value) && !has_length(value);
}

// Calls add(item, place in the sequence) for each item of a sequence, until a call returns false. Returns false then,
// or with a Python error set if the value is no sequence.
template <class Add>
static bool each_item(PyObject *value, const Place &place, const char *wanted, const Add &add)
{
    if (!is_list(value) &&
        (!PySequence_Check(value) || PyUnicode_Check(value) || PyBytes_Check(value)))
        return raise_type(place, wanted, value) != nullptr;
    PyObject *items = PySequence_Tuple(value);  // a copy: __index__ may change a list
    if (!items) return false;
    bool ok = true;
    for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(items); i++)
        ok = add(PyTuple_GET_ITEM(items, i), i);
    Py_DECREF(items);
    return ok;
}

// Raises for the item at `i` of a sequence. Returns false.
static bool refuse_item(const Place &place, PyObject *item, Py_ssize_t i, const char *wanted)
{
    return raise_error(YOKE_E_TYPE, place.call,
                       "argument '%s' has a %.100s at position %zd; it takes %s", place.argument,
                       Py_TYPE(item)->tp_name, i, wanted) != nullptr;
}

bool to_ints(PyObject *value, const Place &place, std::vector<int64_t> *out)
{
    int64_t number = 0;
    // PyTorch's var(False) is no axis 0.
    if (PyBool_Check(value))
        return raise_type(place, "an int or a sequence of ints", value) != nullptr;
    if (is_lone_int(value)) {
        if (!to_int64(value, place, &number)) return false;
        out->push_back(number);
        return true;
    }
    return each_item(value, place, "an int or a sequence of ints",
                     [&](PyObject *item, Py_ssize_t i) {
                         if (!PyIndex_Check(item)) return refuse_item(place, item, i, "integers");
                         if (!to_int64(item, place, &number)) return false;
                         out->push_back(number);
                         return true;
                     });
}

bool to_doubles(PyObject *value, const Place &place, std::vector<double> *out)
{
    double number = 0;
    if (is_number(value)) {
        if (!to_double(value, place, &number)) return false;
        out->push_back(number);
        return true;
    }
    return each_item(value, place, "a number or a sequence of numbers",
                     [&](PyObject *item, Py_ssize_t i) {
                         if (!is_number(item)) return refuse_item(place, item, i, "numbers");
                         if (!to_double(item, place, &number)) return false;
                         out->push_back(number);
                         return true;
                     });
}

bool to_device(PyObject *value, const Place &place, yoke_device **out)
{
    *out = nullptr;
    sync_modes();
    if (value == Py_None || device_handle(value, out)) return true;
    if (reads_foreign && PyUnicode_Check(value) &&
        PyUnicode_CompareWithASCIIString(value, "cuda") == 0)
        return open_card(foreign_card, out);
    if (PyUnicode_Check(value)) return open_spec(value, place, out);
    if (PyLong_Check(value) && !PyBool_Check(value)) return open_index(value, place, out);
    return raise_type(place, "a Device, a spec such as \"cuda:1\", or an index", value) != nullptr;
}

void set_foreign_card(int32_t index)
{
    reads_foreign = index >= 0;
    foreign_card = index < 0 ? 0 : index;
}

bool empty_means_every_axis(const Place &place)
{
    if (!reads_foreign || std::strcmp(place.argument, "axis") != 0) return false;
    for (const char *call : {"sum", "mean", "amax", "amin", "norm"})
        if (std::strcmp(place.call, call) == 0) return true;
    return false;
}

bool to_generator(PyObject *value, const Place &place, yoke_arg *out)
{
    PyObject *stream = PyObject_GetAttrString(value, "_stream");
    if (!stream) PyErr_Clear();
    const bool is_one =
        stream && (stream == Py_None || (PyByteArray_Check(stream) &&
                                         PyByteArray_GET_SIZE(stream) == sizeof(yoke_generator)));
    if (is_one && stream != Py_None) {
        // The generator of the caller keeps the bytes.
        out->kind = YOKE_ARG_GENERATOR;
        out->v.generator = reinterpret_cast<yoke_generator *>(PyByteArray_AS_STRING(stream));
    }
    Py_XDECREF(stream);
    return is_one || raise_type(place, "a yoke.Generator", value) != nullptr;
}

bool to_device_or_current(PyObject *value, const Place &place, yoke_device **out)
{
    if (!to_device(value, place, out)) return false;
    if (*out) return true;
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_current_device(out);
    }
    if (status) return raise_last_error() != nullptr;
    yoke_device_release(*out);
    return true;
}

PyObject *int_tuple(const int64_t *values, int64_t count)
{
    PyObject *tuple = PyTuple_New(static_cast<Py_ssize_t>(count));
    for (int64_t i = 0; tuple && i < count; i++) {
        PyObject *number = PyLong_FromLongLong(values[i]);
        if (!number)
            Py_CLEAR(tuple);
        else
            PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), number);
    }
    return tuple;
}

}  // namespace yoke_python
