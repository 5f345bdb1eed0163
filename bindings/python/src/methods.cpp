// methods.cpp: methods of a tensor that are no ops: moving, exchanging, gradients, the end of life.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/stream.h"

#include "yoke/autograd.h"

#include <cstring>

namespace yoke_python {

namespace {

PyObject *wrap_or_raise(yoke_status status, yoke_tensor *out)
{
    return status ? raise_last_error() : wrap_tensor(out);
}

// Returns whether a text names a dtype. A device spec is excluded without a failed look-up, because the look-up would
// build an unused message.
bool names_dtype(PyObject *value, yoke_dtype *out)
{
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8(value) : nullptr;
    if (!text) PyErr_Clear();
    return text && std::strchr("bfiu", *text) && !std::strchr(text, ':') &&
           yoke_dtype_from_name(text, out) == YOKE_OK;
}

// Reads the device and dtype of the tensor at values[0], as in to(other). Returns false with the Python error set.
bool read_place_of(const char *call, PyObject **values, yoke_device **device, yoke_dtype *dtype)
{
    yoke_tensor *other = tensor_argument(values[0], {call, "device"});
    if (!other) return false;
    *device = yoke_tensor_device(other);
    *dtype = yoke_tensor_dtype(other);
    return values[1] == Py_None || to_dtype(values[1], {call, "dtype"}, dtype);
}

// Reads the device and dtype named by `values`, in this order. Returns false with the Python error set.
bool read_place(const char *call, PyObject **values, yoke_device **device, yoke_dtype *dtype)
{
    if (is_tensor(values[0])) return read_place_of(call, values, device, dtype);
    // to(yoke.float16) and to("float16") mean the dtype: a device is never one.
    if (values[1] == Py_None && (dtype_number(values[0], dtype) || names_dtype(values[0], dtype)))
        values[0] = Py_None;
    if (!to_device(values[0], {call, "device"}, device)) return false;
    return values[1] == Py_None || to_dtype(values[1], {call, "dtype"}, dtype);
}

PyObject *to(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"device", "dtype", "non_blocking"};
    PyObject *values[3] = {Py_None, Py_None, Py_False};
    if (!read_parameters("to", kNames, 3, 0, args, count, keywords, values)) return nullptr;
    yoke_device *device = nullptr;
    yoke_dtype dtype = YOKE_NONE;
    int32_t non_blocking = 0;
    if (!read_place("to", values, &device, &dtype)) return nullptr;
    if (!to_bool(values[2], {"to", "non_blocking"}, &non_blocking)) return nullptr;
    return move_tensor(self, device, dtype, non_blocking != 0);
}

PyObject *to_in_place(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"device", "dtype"};
    PyObject *values[2] = {Py_None, Py_None};
    yoke_tensor *tensor = tensor_argument(self, {"to_", "self"});
    yoke_device *device = nullptr;
    yoke_dtype dtype = YOKE_NONE;
    if (!tensor || !read_parameters("to_", kNames, 2, 0, args, count, keywords, values) ||
        !read_place("to_", values, &device, &dtype))
        return nullptr;
    const Hold hold(tensor);
    // The GIL is kept: no other thread may see the tensor half moved.
    if (with_relief([&] { return yoke_tensor_to_(tensor, device, dtype); }))
        return raise_last_error();
    return new_reference(self);
}

PyObject *cpu(PyObject *self, PyObject *)
{
    PyObject *spec = PyUnicode_FromString("cpu");
    yoke_device *device = nullptr;
    const bool ok = spec && to_device(spec, {"cpu", "device"}, &device);
    Py_XDECREF(spec);
    return ok ? move_tensor(self, device, YOKE_NONE, false) : nullptr;
}

PyObject *pin_memory(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"pin_memory", "self"});
    yoke_tensor *out = nullptr;
    if (!tensor) return nullptr;
    const Hold hold(tensor);
    const yoke_status status = with_relief([&] {
        const ReleaseGil release(may_wait(tensor));
        return yoke_tensor_pin_memory(tensor, &out);
    });
    if (status == YOKE_OK && out == tensor) {
        yoke_tensor_release(out);
        return new_reference(self);
    }
    return wrap_or_raise(status, out);
}

PyObject *is_pinned(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"is_pinned", "self"});
    return tensor ? PyBool_FromLong(yoke_tensor_is_pinned(tensor) == 1) : nullptr;
}

PyObject *record_stream(PyObject *self, PyObject *stream)
{
    yoke_tensor *tensor = tensor_argument(self, {"record_stream", "self"});
    yoke_stream *user = tensor ? stream_argument(stream, {"record_stream", "stream"}) : nullptr;
    if (!user) return nullptr;
    if (yoke_tensor_record_stream(tensor, user)) return raise_last_error();
    Py_RETURN_NONE;
}

PyObject *record_use(PyObject *self, PyObject *event)
{
    yoke_tensor *tensor = tensor_argument(self, {"record_use", "self"});
    yoke_event *end = tensor ? event_argument(event, {"record_use", "event"}) : nullptr;
    if (!end) return nullptr;
    if (yoke_tensor_record_use(tensor, end)) return raise_last_error();
    Py_RETURN_NONE;
}

PyObject *detach(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"detach", "self"});
    yoke_tensor *out = nullptr;
    if (!tensor) return nullptr;
    const yoke_status status = yoke_tensor_detach(tensor, &out);
    return wrap_or_raise(status, out);
}

PyObject *requires_grad(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"requires_grad"};
    PyObject *values[1] = {Py_True};
    int32_t required = 0;
    yoke_tensor *tensor = tensor_argument(self, {"requires_grad_", "self"});
    if (!tensor ||
        !read_parameters("requires_grad_", kNames, 1, 0, args, count, keywords, values) ||
        !to_bool(values[0], {"requires_grad_", "requires_grad"}, &required))
        return nullptr;
    if (yoke_tensor_set_requires_grad(tensor, required)) return raise_last_error();
    return new_reference(self);
}

// Notifies other ranks that wait for this rank's backward: the pending error keeps the backward from starting.
// Returns null, with the error still set.
PyObject *tell_refused(yoke_tensor *tensor)
{
    PyObject *kind = nullptr, *error = nullptr, *trace = nullptr;
    PyErr_Fetch(&kind, &error, &trace);
    PyErr_NormalizeException(&kind, &error, &trace);
    PyObject *const text = PyObject_Str(error);
    const char *const why = text ? PyUnicode_AsUTF8(text) : nullptr;
    PyErr_Clear();
    {
        const ReleaseGil release;
        yoke_backward_note_refused(tensor, why ? why : "an error without a text");
    }
    Py_XDECREF(text);
    PyErr_Restore(kind, error, trace);
    return nullptr;
}

// Runs backward with 'inputs', as yoke.autograd.backward does.
PyObject *backward_to(PyObject *self, PyObject *const *values)
{
    PyObject *module = PyImport_ImportModule("yoke._grad");
    PyObject *done = module ? PyObject_CallMethod(module, "backward", "OOOOO", self, values[0],
                                                  values[1], values[2], values[3])
                            : nullptr;
    Py_XDECREF(module);
    return done;
}

PyObject *backward(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"gradient", "retain_graph", "create_graph", "inputs"};
    PyObject *values[4] = {Py_None, Py_None, Py_False, Py_None};
    int32_t retain = 0, creates = 0;
    yoke_tensor *gradient = nullptr;
    yoke_tensor *tensor = tensor_argument(self, {"backward", "self"});
    if (!tensor) return nullptr;
    const Hold hold(tensor);
    if (!read_parameters("backward", kNames, 4, 0, args, count, keywords, values) ||
        (values[1] != Py_None && !to_bool(values[1], {"backward", "retain_graph"}, &retain)) ||
        !to_bool(values[2], {"backward", "create_graph"}, &creates) ||
        (values[0] != Py_None &&
         !(gradient = tensor_argument(values[0], {"backward", "gradient"}))))
        return tell_refused(tensor);
    if (creates) return backward_to(self, values), tell_refused(tensor);
    if (values[3] != Py_None) return backward_to(self, values);
    const Hold hold_gradient(gradient);
    // A partly walked graph cannot be walked again, so relief runs within the walk.
    const Relieved relieved;
    if (!waited_in([&] { return yoke_backward(tensor, gradient, retain); })) return nullptr;
    Py_RETURN_NONE;
}

PyObject *address(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"data_ptr", "self"});
    return tensor
               ? PyLong_FromUnsignedLongLong(reinterpret_cast<uintptr_t>(yoke_tensor_data(tensor)))
               : nullptr;
}

PyObject *storage_id(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"storage_id", "self"});
    return tensor ? PyLong_FromUnsignedLongLong(yoke_tensor_storage_id(tensor)) : nullptr;
}

PyObject *storage_nbytes(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"storage_nbytes", "self"});
    return tensor ? PyLong_FromLongLong(yoke_tensor_storage_nbytes(tensor)) : nullptr;
}

PyObject *is_contiguous(PyObject *self, PyObject *)
{
    yoke_tensor *tensor = tensor_argument(self, {"is_contiguous", "self"});
    return tensor ? PyBool_FromLong(yoke_tensor_is_contiguous(tensor)) : nullptr;
}

PyObject *close(PyObject *self, PyObject *)
{
    auto *object = reinterpret_cast<TensorObject *>(self);
    yoke_tensor *handle = object->handle;
    object->handle = nullptr;  // first: releasing may run a drop callback that looks here
    yoke_tensor_release(handle);
    Py_RETURN_NONE;
}

// Returns the array of x.numpy() and numpy.asarray(x), made by yoke._numpy, so NumPy is imported only on demand.
PyObject *call_numpy(PyObject *self, PyObject *dtype, PyObject *copy)
{
    PyObject *module = PyImport_ImportModule("yoke._numpy");
    PyObject *array =
        module ? PyObject_CallMethod(module, "array", "OOO", self, dtype, copy) : nullptr;
    Py_XDECREF(module);
    return array;
}

PyObject *numpy(PyObject *self, PyObject *)
{
    if (!tensor_argument(self, {"numpy", "self"})) return nullptr;
    return call_numpy(self, Py_None, Py_None);
}

PyObject *array(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"dtype", "copy"};
    PyObject *values[2] = {Py_None, Py_None};
    if (!tensor_argument(self, {"__array__", "self"}) ||
        !read_parameters("__array__", kNames, 2, 0, args, count, keywords, values))
        return nullptr;
    return call_numpy(self, values[0], values[1]);
}

// Runs NumPy's operators and functions with a tensor as an argument, by yoke._numpy.
PyObject *array_ufunc(PyObject *, PyObject *args, PyObject *keywords)
{
    PyObject *module = PyImport_ImportModule("yoke._numpy");
    PyObject *function = module ? PyObject_GetAttrString(module, "ufunc") : nullptr;
    PyObject *result = function ? PyObject_Call(function, args, keywords) : nullptr;
    Py_XDECREF(function);
    Py_XDECREF(module);
    return result;
}

PyObject *format(PyObject *self, PyObject *spec)
{
    PyObject *module = PyImport_ImportModule("yoke._format");
    PyObject *text = module ? PyObject_CallMethod(module, "formatted", "OO", self, spec) : nullptr;
    Py_XDECREF(module);
    return text;
}

PyObject *deep_copy(PyObject *self, PyObject *memo)
{
    if (!tensor_argument(self, {"__deepcopy__", "self"})) return nullptr;
    PyObject *module = PyImport_ImportModule("yoke._copy");
    PyObject *copy = module ? PyObject_CallMethod(module, "deepcopy", "OO", self, memo) : nullptr;
    Py_XDECREF(module);
    return copy;
}

PyObject *reduce(PyObject *self, PyObject *)
{
    if (!tensor_argument(self, {"__reduce_ex__", "self"})) return nullptr;
    PyObject *module = PyImport_ImportModule("yoke._copy");
    PyObject *parts = module ? PyObject_CallMethod(module, "reduce", "O", self) : nullptr;
    Py_XDECREF(module);
    return parts;
}

const PyMethodDef tensor_methods[] = {
    {"to", keywords(to), kKeywords,
     "to($self, /, device=None, dtype=None, non_blocking=False)\n--\n\n"
     "Returns the tensor on another device and with another dtype; the tensor itself if nothing changes. A dtype may\n"
     "be the first argument; a tensor there stands for its device and dtype. Gradients flow back. With non_blocking the caller does not wait for copies between\n"
     "host and device; wait for the stream before you read such a copy in host memory."},
    {"to_", keywords(to_in_place), kKeywords,
     "to_($self, /, device=None, dtype=None)\n--\n\n"
     "Moves and casts this leaf and its gradient in place; returns the leaf. All holders of the tensor, such as an\n"
     "optimizer, have the new values. Backward through earlier records is an error afterwards."},
    {"cpu", keywords(without_arguments<"cpu", cpu>), kKeywords,
     "cpu($self, /)\n--\n\nReturns the tensor in host memory; the tensor itself if it is there."},
    {"pin_memory", keywords(without_arguments<"pin_memory", pin_memory>), kKeywords,
     "pin_memory($self, /)\n--\n\n"
     "Returns a copy in pinned host memory, which a device reads and writes directly; the tensor itself if it is pinned."},
    {"is_pinned", keywords(without_arguments<"is_pinned", is_pinned>), kKeywords,
     "is_pinned($self, /)\n--\n\nReturns whether the tensor is in pinned memory."},
    {"record_stream", keywords(with_argument<"record_stream", "stream", record_stream>), kKeywords,
     "record_stream($self, /, stream)\n--\n\n"
     "Reports that work unknown to Yoke uses the memory on a stream. After the tensor is freed, the memory is\n"
     "reused only when the earlier work of the stream has finished."},
    {"record_use", keywords(with_argument<"record_use", "event", record_use>), kKeywords,
     "record_use($self, /, event)\n--\n\n"
     "Reports that work unknown to Yoke uses the memory, and ends before an event. The memory is reused\n"
     "once the event is reached, or the stream of the next user waits for the event."},
    {"detach", keywords(without_arguments<"detach", detach>), kKeywords,
     "detach($self, /)\n--\n\nReturns a tensor with the same memory that is not recorded for gradients."},
    {"requires_grad_", keywords(requires_grad), kKeywords,
     "requires_grad_($self, /, requires_grad=True)\n--\n\n"
     "Turns the gradient of this leaf on or off; returns the tensor. TypeError for integers."},
    {"backward", keywords(backward), kKeywords,
     "backward($self, /, gradient=None, retain_graph=None, create_graph=False, inputs=None)\n--\n\n"
     "Adds the gradients of this tensor to the leaves behind it, or to `inputs` alone. `gradient` has the shape of this\n"
     "tensor; for a single element it may be missing, else that is a ValueError. A second call is a StateError\n"
     "without retain_graph. UnsupportedError for create_graph=True: there are no second-order gradients."},
    {"numpy", keywords(without_arguments<"numpy", numpy>), kKeywords,
     "numpy($self, /)\n--\n\n"
     "Returns a NumPy array over the same memory. The tensor must be on the CPU, have a dtype of NumPy and\n"
     "require no grad; else UnsupportedError or StateError names the call to make first."},
    {"__array__", keywords(array), kKeywords,
     "__array__($self, /, dtype=None, copy=None)\n--\n\nReturns numpy() to NumPy, which calls this method."},
    {"__array_ufunc__", keywords(array_ufunc), METH_VARARGS | METH_KEYWORDS,
     "__array_ufunc__($self, ufunc, method, /, *inputs, **options)\n--\n\n"
     "Computes NumPy's operators with a tensor, such as `array + x`. TypeError for other functions of NumPy."},
    {"__format__", format, METH_O,
     "__format__($self, spec, /)\n--\n\n"
     "Formats the number of a tensor without axes, as in f\"{x:.3f}\". TypeError for a tensor with axes."},
    {"__deepcopy__", deep_copy, METH_O,
     "__deepcopy__($self, memo, /)\n--\n\n"
     "Returns a separate leaf with the same values, strides and gradient, for copy.deepcopy. Tensors that share\n"
     "memory in a copied structure share memory in the copy. StateError for a tensor that is not a leaf."},
    {"__reduce_ex__", reduce, METH_O,
     "__reduce_ex__($self, protocol, /)\n--\n\n"
     "Returns the parts for pickle and copy.copy: elements, layout, device and requires_grad, without a\n"
     "gradient. Tensors that share memory in a pickle share memory again after loading."},
    {"data_ptr", keywords(without_arguments<"data_ptr", address>), kKeywords,
     "data_ptr($self, /)\n--\n\nReturns the address of the first element; 0 for a tensor without elements."},
    {"storage_id", keywords(without_arguments<"storage_id", storage_id>), kKeywords,
     "storage_id($self, /)\n--\n\nReturns a number that all views of a storage share; no other live storage has the same number."},
    {"storage_nbytes", keywords(without_arguments<"storage_nbytes", storage_nbytes>), kKeywords,
     "storage_nbytes($self, /)\n--\n\nReturns the bytes of the whole storage, which may be more than the bytes of this tensor."},
    {"is_contiguous", keywords(without_arguments<"is_contiguous", is_contiguous>), kKeywords,
     "is_contiguous($self, /)\n--\n\nReturns whether the elements lie row-major without gaps."},
    {"close", keywords(without_arguments<"close", close>), kKeywords,
     "close($self, /)\n--\n\n"
     "Releases the memory now, unless a view or a record needs the memory. Any later use of the tensor is a ClosedError."},
};

}  // namespace

void add_methods(TensorParts &parts)
{
    parts.add(tensor_methods);
}

}  // namespace yoke_python
