#include "bindings/python/src/values/make.h"

#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/elements.h"
#include "bindings/python/src/values/invoke.h"

#include "yoke/autograd.h"

#include <new>
#include <vector>

namespace yoke_python {
namespace {

// Converts `tensor` to another device or dtype, and releases it. Returns null with an error set on failure.
yoke_tensor *converted(yoke_tensor *tensor, yoke_device *device, yoke_dtype dtype)
{
    yoke_tensor *out = nullptr;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release;
        return yoke_tensor_to(tensor, device, dtype, &out);
    });
    yoke_tensor_release(tensor);
    if (status) raise_last_error();
    return out;
}

// Returns a tensor with its own memory, even if to() needs no copy.
yoke_tensor *from_tensor(PyObject *data, const MakeOptions &options)
{
    yoke_tensor *source = tensor_argument(data, {options.call, "data"});
    yoke_tensor *detached = nullptr;
    if (!source) return nullptr;
    const Hold hold(source);
    if (yoke_tensor_detach(source, &detached)) return raise_last_error(), nullptr;
    yoke_tensor *out = converted(detached, options.device, options.dtype);
    if (!out || yoke_shares_memory(out, source) != 1) return out;
    PyObject *shared = wrap_tensor(out);
    PyObject *copy = shared ? invoke(kOp_clone, shared, nullptr, 0, nullptr) : nullptr;
    Py_XDECREF(shared);
    yoke_tensor *result = copy ? yoke_tensor_retain(handle_of(copy)) : nullptr;
    Py_XDECREF(copy);
    return result;
}

yoke_tensor *copy_buffer(const Py_buffer &view, yoke_dtype dtype, const MakeOptions &options,
                         yoke_device *device)
{
    std::vector<int64_t> shape(view.shape, view.shape + view.ndim);
    std::vector<char> packed;
    const void *data = view.buf;
    if (!PyBuffer_IsContiguous(&view, 'C')) {
        packed.resize(static_cast<size_t>(view.len));
        if (PyBuffer_ToContiguous(packed.data(), const_cast<Py_buffer *>(&view), view.len, 'C') < 0)
            return nullptr;
        data = packed.data();
    }
    yoke_tensor *out = nullptr;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release;
        return yoke_tensor_from_data(data, view.len, shape.data(), view.ndim, dtype, device, &out);
    });
    if (status) return raise_last_error(), nullptr;
    return options.dtype == YOKE_NONE ? out : converted(out, nullptr, options.dtype);
}

yoke_tensor *from_buffer(PyObject *data, const MakeOptions &options, yoke_device *device)
{
    Py_buffer view;
    if (PyObject_GetBuffer(data, &view, PyBUF_FULL_RO) < 0) return nullptr;
    const yoke_dtype dtype = buffer_dtype(view.format, view.itemsize);
    yoke_tensor *out = nullptr;
    if (dtype == YOKE_NONE)
        raise_error(
            YOKE_E_UNSUPPORTED, options.call,
            "argument 'data' is a %.100s with elements of format \"%s\", which is not a dtype of Yoke; convert the data first, for instance with %s",
            Py_TYPE(data)->tp_name, view.format ? view.format : "B",
            conversion_of(view.format ? view.format : "B"));
    else
        out = copy_buffer(view, dtype, options, device);
    PyBuffer_Release(&view);
    return out;
}

yoke_tensor *from_anything(PyObject *data, const MakeOptions &options)
{
    if (is_tensor(data)) return from_tensor(data, options);
    yoke_device *device = options.device;
    if (!device && !to_device_or_current(Py_None, {options.call, "device"}, &device))
        return nullptr;
    // NumPy's scalars have buffers too, and are numbers.
    return PyObject_CheckBuffer(data) && !is_number(data)
               ? from_buffer(data, options, device)
               : tensor_from_numbers(data, options, device);
}

}  // namespace

PyObject *make_tensor(PyObject *data, const MakeOptions &options)
{
    yoke_tensor *out = nullptr;
    sync_modes();
    try {
        out = from_anything(data, options);
    } catch (const std::bad_alloc &) {
        return PyErr_NoMemory();
    }
    if (!out) return nullptr;
    if (options.requires_grad && yoke_tensor_set_requires_grad(out, 1)) {
        raise_last_error();
        yoke_tensor_release(out);
        return nullptr;
    }
    return wrap_tensor(out);
}

PyObject *tensor_function(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"data", "dtype", "device", "requires_grad"};
    PyObject *values[4] = {nullptr, Py_None, Py_None, Py_False};
    MakeOptions options;
    if (!read_parameters("tensor", kNames, 4, 0, args, count, keywords, values) ||
        !to_dtype(values[1], {"tensor", "dtype"}, &options.dtype) ||
        !to_device(values[2], {"tensor", "device"}, &options.device) ||
        !to_bool(values[3], {"tensor", "requires_grad"}, &options.requires_grad))
        return nullptr;
    return make_tensor(values[0], options);
}

}  // namespace yoke_python
