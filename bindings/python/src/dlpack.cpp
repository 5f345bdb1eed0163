// dlpack.cpp: exchange of memory with other libraries through DLPack capsules, both generations.

#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/invoke.h"

#include "yoke/device.h"
#include "yoke/stream.h"

#include <cstring>

namespace yoke_python {
namespace {

// Layouts of DLPack 1.x, with which a producer of capsules frees an unused capsule.
struct DlTensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
};

struct DlManaged {
    DlTensor tensor;
    void *context;
    void (*deleter)(DlManaged *);
};

struct DlManagedVersioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    void (*deleter)(DlManagedVersioned *);
    uint64_t flags;
    DlTensor tensor;
};

constexpr uint64_t kIsCopied = 2;
constexpr int64_t kDlCpu = 1;
constexpr int64_t kDlCuda = 2;

// Names of capsules: a name gives the content, and whether the consumer has taken it.
struct Names {
    const char *fresh;
    const char *used;
};
constexpr Names kCapsuleNames[] = {{"dltensor", "used_dltensor"},
                                   {"dltensor_versioned", "used_dltensor_versioned"}};

template <class Managed, int kVersioned>
void free_capsule(PyObject *capsule)
{
    const char *name = PyCapsule_GetName(capsule);
    if (!name || std::strcmp(name, kCapsuleNames[kVersioned].fresh) != 0)
        return;  // the consumer has it
    auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, name));
    if (managed->deleter) managed->deleter(managed);
}

int64_t device_type_of(yoke_tensor *tensor)
{
    const char *kind = yoke_device_kind(yoke_tensor_device(tensor));
    return std::strcmp(kind, "cuda") == 0 ? kDlCuda : kDlCpu;
}

struct Request {
    bool versioned = false;
    bool copy = false;
    bool to_cpu = false;
    void *stream = nullptr;
};

bool read_pair(PyObject *value, const Place &place, int64_t *first, int64_t *second)
{
    if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2)
        return to_int64(PyTuple_GET_ITEM(value, 0), place, first) &&
               to_int64(PyTuple_GET_ITEM(value, 1), place, second);
    return raise_type(place, "a tuple of two integers", value) != nullptr;
}

bool read_stream(PyObject *value, yoke_tensor *tensor, Request *out)
{
    int64_t stream = 0;
    if (value == Py_None) return true;  // the legacy default stream
    if (!to_int64(value, {"__dlpack__", "stream"}, &stream)) return false;
    // -1: the consumer takes care of the order itself.
    out->stream = reinterpret_cast<void *>(static_cast<intptr_t>(stream));
    if (stream == -1) return true;
    if (device_type_of(tensor) == kDlCpu) {
        raise_error(YOKE_E_VALUE, "__dlpack__",
                    "argument 'stream' is %lld; it must be None, because a CPU has no streams",
                    static_cast<long long>(stream));
        return false;
    }
    if (stream < -1 || stream == 0) {
        raise_error(
            YOKE_E_VALUE, "__dlpack__",
            "argument 'stream' is %lld; it must be 1 for the legacy default stream, 2 for the default stream of each thread, a stream's handle, or -1 for no synchronization",
            static_cast<long long>(stream));
        return false;
    }
    if (stream == 1) out->stream = nullptr;  // Yoke's default stream
    return true;
}

bool read_device(PyObject *value, yoke_tensor *tensor, bool may_copy, Request *out)
{
    int64_t type = 0, index = 0;
    if (value == Py_None) return true;
    if (!read_pair(value, {"__dlpack__", "dl_device"}, &type, &index)) return false;
    const int64_t own = device_type_of(tensor);
    const int64_t own_index = yoke_device_index(yoke_tensor_device(tensor));
    if (type == own && index == own_index) return true;
    out->to_cpu = type == kDlCpu && may_copy;
    if (!out->to_cpu)
        PyErr_Format(
            PyExc_BufferError,
            "__dlpack__(): argument 'dl_device' is (%lld, %lld), but the tensor is on the DLPack device (%lld, %lld); it cannot be exported to another device%s",
            static_cast<long long>(type), static_cast<long long>(index),
            static_cast<long long>(own), static_cast<long long>(own_index),
            may_copy ? "" : " without a copy");
    return out->to_cpu;
}

bool read_request(PyObject **values, yoke_tensor *tensor, Request *out)
{
    int64_t major = 0, minor = 0;
    int32_t copy = 0;
    if (values[1] != Py_None &&
        !read_pair(values[1], {"__dlpack__", "max_version"}, &major, &minor))
        return false;
    if (values[3] != Py_None && !to_bool(values[3], {"__dlpack__", "copy"}, &copy)) return false;
    out->versioned = major >= 1;
    out->copy = copy != 0;
    return read_stream(values[0], tensor, out) &&
           read_device(values[2], tensor, values[3] != Py_False, out);
}

PyObject *export_tensor(yoke_tensor *tensor, const Request &request)
{
    void *managed = nullptr;
    if (yoke_tensor_to_dlpack(tensor, request.versioned, request.stream, &managed))
        return raise_last_error();
    if (request.versioned && (request.copy || request.to_cpu))
        static_cast<DlManagedVersioned *>(managed)->flags |= kIsCopied;
    PyObject *capsule = PyCapsule_New(
        managed, kCapsuleNames[request.versioned].fresh,
        request.versioned ? free_capsule<DlManagedVersioned, 1> : free_capsule<DlManaged, 0>);
    if (capsule) return capsule;
    if (request.versioned)
        static_cast<DlManagedVersioned *>(managed)->deleter(
            static_cast<DlManagedVersioned *>(managed));
    else
        static_cast<DlManaged *>(managed)->deleter(static_cast<DlManaged *>(managed));
    return nullptr;
}

// Reads an attribute: a new reference, null if the attribute does not exist. Returns false for any other error.
bool optional_attribute(PyObject *object, const char *name, PyObject **out)
{
    *out = PyObject_GetAttrString(object, name);
    if (!*out && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return *out || !PyErr_Occurred();
}

// Returns the stream after which the producer orders its work: Yoke's current stream of the device. None for host
// memory.
PyObject *stream_for(PyObject *source)
{
    sync_modes();
    PyObject *place = nullptr;
    if (!optional_attribute(source, "__dlpack_device__", &place)) return nullptr;
    if (!place) return new_reference(Py_None);  // without the method: a CPU producer
    Py_SETREF(place, PyObject_CallNoArgs(place));
    int type = 0, index = 0;
    const bool known = place && PyTuple_Check(place);
    const bool read = place && (!known || PyArg_ParseTuple(place, "ii", &type, &index));
    Py_XDECREF(place);
    if (!read) return nullptr;
    yoke_device *device = nullptr;
    yoke_stream *stream = nullptr;
    // A device that is not available is an error when the memory comes in.
    if (!known || type != kDlCuda || yoke_device_get("cuda", index, &device))
        return new_reference(Py_None);
    const yoke_status status = yoke_current_stream(device, &stream);
    yoke_device_release(device);
    if (status) return raise_last_error();
    const auto handle = reinterpret_cast<uintptr_t>(yoke_stream_handle(stream));
    yoke_stream_release(stream);
    return PyLong_FromUnsignedLongLong(handle ? handle : 1);
}

PyObject *call_producer(PyObject *method, PyObject *stream, bool versioned)
{
    PyObject *none = PyTuple_New(0), *options = PyDict_New(),
             *version = Py_BuildValue("(ii)", 1, 0);
    bool ok = none && options && version;
    ok = ok && (stream == Py_None || PyDict_SetItemString(options, "stream", stream) == 0);
    ok = ok && (!versioned || PyDict_SetItemString(options, "max_version", version) == 0);
    PyObject *capsule = ok ? PyObject_Call(method, none, options) : nullptr;
    Py_XDECREF(version);
    Py_XDECREF(options);
    Py_XDECREF(none);
    return capsule;
}

// Returns the capsule of a producer: versioned if the producer supports versions.
PyObject *ask_for_capsule(PyObject *source)
{
    PyObject *method = nullptr;
    if (!optional_attribute(source, "__dlpack__", &method)) return nullptr;
    if (!method)
        return raise_type({"from_dlpack", "x"}, "an object with __dlpack__, or a DLPack capsule",
                          source);
    PyObject *stream = stream_for(source);
    PyObject *capsule = stream ? call_producer(method, stream, true) : nullptr;
    if (stream && !capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {  // before DLPack 1.0
        PyErr_Clear();
        capsule = call_producer(method, stream, false);
    }
    Py_XDECREF(stream);
    Py_DECREF(method);
    return capsule;
}

PyObject *consume(PyObject *capsule)
{
    for (int versioned = 1; versioned >= 0; versioned--) {
        if (!PyCapsule_IsValid(capsule, kCapsuleNames[versioned].fresh)) continue;
        void *managed = PyCapsule_GetPointer(capsule, kCapsuleNames[versioned].fresh);
        yoke_tensor *out = nullptr;
        if (yoke_tensor_from_dlpack(managed, versioned, &out)) return raise_last_error();
        PyCapsule_SetName(capsule, kCapsuleNames[versioned].used);
        return wrap_tensor(out);
    }
    for (const Names &names : kCapsuleNames)
        if (PyCapsule_IsValid(capsule, names.used))
            return raise_error(
                YOKE_E_STATE, "from_dlpack",
                "this capsule was already consumed; get a new capsule from the producer");
    return raise_type({"from_dlpack", "x"}, "an object with __dlpack__, or a DLPack capsule",
                      capsule);
}

PyObject *tensor_dlpack(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kParameters[] = {"stream", "max_version", "dl_device", "copy"};
    PyObject *values[4] = {Py_None, Py_None, Py_None, Py_None};
    Request request;
    yoke_tensor *tensor = tensor_argument(self, {"__dlpack__", "self"});
    if (!tensor ||
        !read_parameters("__dlpack__", kParameters, 4, 4, args, count, keywords, values) ||
        !read_request(values, tensor, &request))
        return nullptr;
    PyObject *source = request.to_cpu ? PyObject_CallMethod(self, "cpu", nullptr)
                       : request.copy ? invoke(kOp_clone, self, nullptr, 0, nullptr)
                                      : new_reference(self);
    PyObject *capsule = source ? export_tensor(handle_of(source), request) : nullptr;
    Py_XDECREF(source);
    return capsule;
}

PyObject *tensor_dlpack_device(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"__dlpack_device__", "self"});
    if (!tensor) return nullptr;
    return Py_BuildValue("(Li)", static_cast<long long>(device_type_of(tensor)),
                         static_cast<int>(yoke_device_index(yoke_tensor_device(tensor))));
}

const PyMethodDef dlpack_methods[] = {
    {"__dlpack__", keywords(tensor_dlpack), kKeywords,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
     "Returns a DLPack capsule; copies the memory only if copy=True or dl_device needs a copy."},
    {"__dlpack_device__", tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\nReturns (device type, index) in DLPack's numbers."},
};

}  // namespace

PyObject *from_dlpack(PyObject *, PyObject *source)
{
    PyObject *capsule =
        PyCapsule_CheckExact(source) ? new_reference(source) : ask_for_capsule(source);
    PyObject *made = capsule ? consume(capsule) : nullptr;
    Py_XDECREF(capsule);
    return made;
}

void add_dlpack(TensorParts &parts)
{
    parts.add(dlpack_methods);
}

}  // namespace yoke_python
