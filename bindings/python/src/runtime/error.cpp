#include "bindings/python/src/runtime/error.h"

#include "yoke/memory.h"
#include "yoke/runtime.h"
#include "yoke/state.h"

#include <cctype>
#include <cstdarg>
#include <cstring>

namespace yoke_python {
namespace {

struct ErrorClass {
    const char *name;
    PyObject **also;  // Python's own class for it, or null
    const char *doc;
};

// In the order of the status codes.
const ErrorClass kClasses[] = {
    {"Error", &PyExc_Exception, "Base class of all errors of Yoke."},
    {"ValueError", &PyExc_ValueError, "An argument has a value that cannot be used."},
    {"TypeError", &PyExc_TypeError, "An argument has the wrong type or dtype."},
    {"IndexError", &PyExc_IndexError, "An index or axis is out of range."},
    {"ClosedError", nullptr, "A tensor was used after close()."},
    {"StateError", &PyExc_RuntimeError, "Calls came in the wrong order."},
    {"UnsupportedError", nullptr, "The backend or the build does not support the call."},
    {"OutOfMemoryError", &PyExc_MemoryError, "No memory on the device or the host."},
    {"DeviceUnavailableError", nullptr, "The device cannot be used; the message says why."},
    {"DeviceLostError", nullptr, "The device stopped answering."},
    {"TimeoutError", &PyExc_TimeoutError, "A deadline passed."},
    {"CancelledError", nullptr, "The caller cancelled the operation."},
    {"CollectiveError", nullptr, "A collective failed."},
    {"CheckpointError", nullptr, "Recomputation disagreed with the first run."},
    {"IOError", &PyExc_OSError, "A file or socket could not be read or written."},
    {"ForkedError", nullptr, "A device was used in a forked child process."},
    {"InternalError", nullptr, "A defect in Yoke itself: please report it."},
};
constexpr yoke_status kCount = sizeof kClasses / sizeof *kClasses;
static_assert(kCount == YOKE_E_INTERNAL + 1, "a class for each status code");

PyObject *classes[kCount];

PyObject *class_of(yoke_status status)
{
    return classes[status > 0 && status < kCount ? status : YOKE_E_INTERNAL];
}

bool set_attribute(PyObject *object, const char *name, PyObject *value)
{
    const bool ok = value && PyObject_SetAttrString(object, name, value) == 0;
    Py_XDECREF(value);
    return ok;
}

bool set_attributes(PyObject *object, yoke_status code, int64_t native_code, const char *device,
                    const char *call)
{
    return set_attribute(object, "code", PyLong_FromLong(code)) &&
           set_attribute(object, "native_code", PyLong_FromLongLong(native_code)) &&
           set_attribute(object, "device", PyUnicode_FromString(device)) &&
           set_attribute(object, "call", PyUnicode_FromString(call));
}

PyObject *make_class(yoke_status code)
{
    const ErrorClass &entry = kClasses[code];
    PyObject *own = code == YOKE_OK ? *entry.also : classes[YOKE_OK];
    PyObject *bases =
        code != YOKE_OK && entry.also ? PyTuple_Pack(2, own, *entry.also) : PyTuple_Pack(1, own);
    char name[64] = "yoke.";
    std::strncat(name, entry.name, sizeof name - 6);
    PyObject *made = bases ? PyErr_NewExceptionWithDoc(name, entry.doc, bases, nullptr) : nullptr;
    Py_XDECREF(bases);
    if (made && !set_attributes(made, code, 0, "", "")) Py_CLEAR(made);
    if (made && code == YOKE_E_OOM && !set_attribute(made, "details", PyDict_New())) Py_CLEAR(made);
    return made;
}

// Returns the name of a call in scripts, without the C functions' common prefix.
const char *script_name(const char *call)
{
    return std::strncmp(call, "yoke_", 5) == 0 ? call + 5 : call;
}

PyObject *make_exception(yoke_status status, PyObject *message, int64_t native_code,
                         const char *device, const char *call)
{
    PyObject *made = message ? PyObject_CallOneArg(class_of(status), message) : nullptr;
    if (made && !set_attributes(made, status, native_code, device, script_name(call)))
        Py_CLEAR(made);
    // An OSError, as what the system refuses is in Python.
    if (made && status == YOKE_E_IO && native_code &&
        !set_attribute(made, "errno", PyLong_FromLongLong(native_code)))
        Py_CLEAR(made);
    Py_XDECREF(message);
    return made;
}

PyObject *from_record(const yoke_error &error, const char *call)
{
    PyObject *message = PyUnicode_DecodeUTF8(
        error.message, static_cast<Py_ssize_t>(std::strlen(error.message)), "replace");
    PyObject *made = make_exception(error.status, message, error.native_code, error.device, call);
    if (made && error.cause) {
        PyObject *cause = from_record(*error.cause, error.cause->call);
        if (cause)
            PyException_SetCause(made, cause);  // takes the reference
        else
            PyErr_Clear();
    }
    return made;
}

// Returns the value of one detail, a number of bytes or a text: a new reference, or null.
PyObject *detail_of(yoke_state *value)
{
    int64_t number = 0, length = 0;
    const char *text = "";
    if (yoke_state_kind(value, "") == YOKE_STATE_INT) {
        yoke_state_get_int(value, "", &number);
        return PyLong_FromLongLong(number);
    }
    yoke_state_get_string(value, "", &text, &length);
    return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(length), "surrogateescape");
}

bool add_detail(PyObject *dict, const yoke_state_key &key, yoke_state *value)
{
    PyObject *name = PyUnicode_FromStringAndSize(key.text, static_cast<Py_ssize_t>(key.length));
    PyObject *object = name ? detail_of(value) : nullptr;
    const bool ok = object && PyDict_SetItem(dict, name, object) == 0;
    Py_XDECREF(object);
    Py_XDECREF(name);
    return ok;
}

// Returns the numbers of a device without memory: a new dict, empty after any other failure; null with an error set.
PyObject *oom_details()
{
    PyObject *dict = PyDict_New();
    yoke_state *const details = yoke_oom_details();
    if (!details) return dict;
    for (int64_t i = 0; dict && i < yoke_state_count(details); ++i) {
        yoke_state_key key{};
        key.struct_size = sizeof key;
        yoke_state *value = nullptr;
        if (yoke_state_entry(details, i, &key, &value)) continue;  // no host memory for the error
        if (!add_detail(dict, key, value)) Py_CLEAR(dict);
        yoke_state_release(value);
    }
    yoke_state_release(details);
    return dict;
}

bool has(PyObject *object, const char *name)
{
    return PyObject_HasAttrString(reinterpret_cast<PyObject *>(Py_TYPE(object)), name);
}

// Returns how an array of another library becomes a tensor, for the end of a message; "" for other objects.
const char *way_to_tensor(PyObject *given)
{
    if (std::strcmp(Py_TYPE(given)->tp_name, "numpy.ndarray") == 0) return "; write yoke.tensor(x)";
    if (has(given, "__dlpack__")) return "; write yoke.from_dlpack(x)";
    return has(given, "__array__") ? "; write yoke.tensor(numpy.asarray(x))" : "";
}

PyObject *set_error(PyObject *exception)
{
    if (exception) {
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception)), exception);
        Py_DECREF(exception);
    }
    return nullptr;
}

}  // namespace

bool init_errors(PyObject *module)
{
    for (yoke_status code = 0; code < kCount; code++) {
        classes[code] = make_class(code);
        if (!classes[code]) return false;
        Py_INCREF(classes[code]);
        if (PyModule_AddObject(module, kClasses[code].name, classes[code]) < 0) return false;
    }
    return true;
}

PyObject *raise_last_error(const char *call)
{
    const yoke_error &error = *yoke_last_error();
    const bool is_oom = error.status == YOKE_E_OOM;
    PyObject *exception = from_record(error, call ? call : error.call);
    if (exception && is_oom && !set_attribute(exception, "details", oom_details()))
        Py_CLEAR(exception);
    return set_error(exception);
}

PyObject *raise_error(yoke_status status, const char *call, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyObject *text = PyUnicode_FromFormatV(format, values);
    va_end(values);
    const bool is_operator = !std::isalpha(*call) && *call != '_';  // for example "&"
    PyObject *message =
        text ? PyUnicode_FromFormat(is_operator ? "%s: %U" : "%s(): %U", call, text) : nullptr;
    Py_XDECREF(text);
    return set_error(make_exception(status, message, 0, "", call));
}

PyObject *raise_type(const Place &place, const char *wanted, PyObject *given)
{
    const bool tensor_is_wanted = std::strncmp(wanted, "a tensor", 8) == 0;
    return raise_error(YOKE_E_TYPE, place.call, "argument '%s' must be %s, not %.100s%s",
                       place.argument, wanted, Py_TYPE(given)->tp_name,
                       tensor_is_wanted ? way_to_tensor(given) : "");
}

}  // namespace yoke_python
