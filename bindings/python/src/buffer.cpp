// buffer.cpp: memoryview(x) and numpy.asarray(x): the memory of a CPU tensor without a copy.
//
// A view keeps the C tensor, not the Python object, so close() does not pull memory from under it.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/elements.h"

#include "yoke/autograd.h"
#include "yoke/device.h"

#include <cstring>

namespace yoke_python {
namespace {

struct Export {
    yoke_tensor *tensor;
    Py_ssize_t shape[YOKE_MAX_NDIM];
    Py_ssize_t strides[YOKE_MAX_NDIM];  // in bytes
};

// Returns why the memory cannot be shown, or null.
const char *obstacle(yoke_tensor *tensor)
{
    if (std::strcmp(yoke_device_kind(yoke_tensor_device(tensor)), "cpu") != 0)
        return "the tensor is not in host memory; call .cpu() first";
    if (!buffer_format(yoke_tensor_dtype(tensor)))
        return "the buffer protocol does not support this dtype; call .to(dtype=yoke.float32) first";
    if (yoke_tensor_requires_grad(tensor)) return "the tensor requires grad; call .detach() first";
    return nullptr;
}

bool is_dense_for(yoke_tensor *tensor, int flags)
{
    const bool c_order = yoke_tensor_is_contiguous(tensor) == 1;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS)
        return c_order && yoke_tensor_ndim(tensor) <= 1;
    const bool takes_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
    const bool wants_c = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS ||
                         (flags & PyBUF_ANY_CONTIGUOUS) == PyBUF_ANY_CONTIGUOUS;
    return c_order || (takes_strides && !wants_c);
}

int refuse(Py_buffer *view, const char *reason)
{
    view->obj = nullptr;
    PyErr_Format(PyExc_BufferError, "the memory of this tensor cannot be exported: %s", reason);
    return -1;
}

void fill(Py_buffer *view, yoke_tensor *tensor, Export *more, int flags)
{
    const int64_t itemsize = yoke_tensor_itemsize(tensor);
    const int64_t ndim = yoke_tensor_ndim(tensor);
    for (int64_t i = 0; i < ndim; i++) {
        more->shape[i] = static_cast<Py_ssize_t>(yoke_tensor_shape(tensor)[i]);
        more->strides[i] = static_cast<Py_ssize_t>(yoke_tensor_strides(tensor)[i] * itemsize);
    }
    view->buf = yoke_tensor_data(tensor);
    view->len = static_cast<Py_ssize_t>(yoke_tensor_nbytes(tensor));
    view->itemsize = static_cast<Py_ssize_t>(itemsize);
    view->readonly = 0;
    view->ndim = static_cast<int>(ndim);
    view->format = (flags & PyBUF_FORMAT)
                       ? const_cast<char *>(buffer_format(yoke_tensor_dtype(tensor)))
                       : nullptr;
    view->shape = (flags & PyBUF_ND) ? more->shape : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? more->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = more;
}

int get_buffer(PyObject *self, Py_buffer *view, int flags)
{
    yoke_tensor *tensor = handle_of(self);
    view->obj = nullptr;
    if (!tensor) return raise_closed({"memoryview", "self"}), -1;
    if (const char *reason = obstacle(tensor)) return refuse(view, reason);
    if (!is_dense_for(tensor, flags))
        return refuse(view, "the tensor is not contiguous; call .contiguous() first");
    auto *more = static_cast<Export *>(PyMem_Malloc(sizeof(Export)));
    if (!more) return PyErr_NoMemory(), -1;
    // The export holds a view: it keeps this memory where the tensor moves (to_).
    if (yoke_tensor_detach(tensor, &more->tensor)) {
        PyMem_Free(more);
        raise_last_error();
        return -1;
    }
    fill(view, more->tensor, more, flags);
    static char nowhere[1];  // consumers take a null pointer for a failure
    if (!view->buf) view->buf = nowhere;
    view->obj = new_reference(self);
    return 0;
}

void release_buffer(PyObject *, Py_buffer *view)
{
    auto *more = static_cast<Export *>(view->internal);
    yoke_tensor_release(more->tensor);
    PyMem_Free(more);
}

const PyType_Slot buffer_slots[] = {
    {Py_bf_getbuffer, slot(get_buffer)},
    {Py_bf_releasebuffer, slot(release_buffer)},
};

}  // namespace

void add_buffer(TensorParts &parts)
{
    parts.add(buffer_slots);
}

}  // namespace yoke_python
