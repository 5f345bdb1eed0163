#include "bindings/python/src/values/tensor.h"

#include "bindings/python/src/runtime/call.h"
#include "bindings/python/src/runtime/parameters.h"

#include "yoke/device.h"

#include <structmember.h>

#include <cstring>

namespace yoke_python {

PyTypeObject *tensor_type;

namespace {

// Freed objects of the exact type; each still holds its reference to the type.
constexpr int kFreeListSize = 256;
TensorObject *free_list[kFreeListSize];
int free_count = 0;

TensorObject *allocate()
{
    if (free_count == 0) return PyObject_GC_New(TensorObject, tensor_type);
    TensorObject *self = free_list[--free_count];
    _Py_NewReference(&self->ob_base);
    return self;
}

void deallocate(PyObject *object)
{
    auto *self = reinterpret_cast<TensorObject *>(object);
    PyObject_GC_UnTrack(object);
    if (self->weakrefs) PyObject_ClearWeakRefs(object);
    yoke_tensor_release(self->handle);
    self->handle = nullptr;
    PyTypeObject *type = Py_TYPE(object);
    if (type == tensor_type && free_count < kFreeListSize) {
        free_list[free_count++] = self;
        return;
    }
    type->tp_free(object);
    Py_DECREF(type);
}

int traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    return 0;
}

// Implements Tensor(sizes), Tensor(data), PyTorch's constructor of float32 tensors, by yoke._types.
PyObject *create_by_type(PyObject *args, PyObject *keywords)
{
    PyObject *module = PyImport_ImportModule("yoke._types");
    PyObject *make = module ? PyObject_GetAttrString(module, "make_float") : nullptr;
    PyObject *made = make ? PyObject_Call(make, args, keywords) : nullptr;
    Py_XDECREF(make);
    Py_XDECREF(module);
    return made;
}

// Implements Tensor(x): returns a new handle to x. A subclass such as nn.Parameter takes a tensor over in this way.
PyObject *create(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    PyObject *source = nullptr;
    if ((keywords && PyDict_GET_SIZE(keywords)) || PyTuple_GET_SIZE(args) != 1 ||
        !is_tensor(source = PyTuple_GET_ITEM(args, 0)))
        return type == tensor_type
                   ? create_by_type(args, keywords)
                   : raise_error(
                         YOKE_E_TYPE, type->tp_name,
                         "takes one tensor and returns another handle of the tensor; write yoke.tensor(data) for a tensor of numbers");
    yoke_tensor *handle = tensor_argument(source, {"Tensor", "x"});
    if (!handle) return nullptr;
    yoke_tensor_retain(handle);
    if (type == tensor_type) return wrap_tensor(handle);
    auto *self = reinterpret_cast<TensorObject *>(type->tp_alloc(type, 0));  // zeroed and tracked
    if (!self) {
        yoke_tensor_release(handle);
        return nullptr;
    }
    self->handle = handle;
    return &self->ob_base;
}

Py_hash_t hash(PyObject *object)
{
    return _Py_HashPointer(object);
}

PyObject *represent(PyObject *self)
{
    PyObject *module = PyImport_ImportModule("yoke._format");
    PyObject *text = module ? PyObject_CallMethod(module, "tensor_repr", "O", self) : nullptr;
    Py_XDECREF(module);
    return text;
}

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(TensorObject, weakrefs), READONLY, nullptr},
    {},
};

const char kDoc[] =
    "Strided view of memory on one device. yoke.tensor, yoke.zeros and the other creation functions return\n"
    "tensors. Every op whose first argument is a tensor is a method. Views share memory.";

}  // namespace

bool init_tensor(PyObject *module, const TensorParts &parts)
{
    // CPython refers to these tables for good. Each ends with an entry of zeros.
    auto &methods = *new std::vector<PyMethodDef>(parts.methods);
    auto &attributes = *new std::vector<PyGetSetDef>(parts.attributes);
    methods.emplace_back();
    attributes.emplace_back();
    std::vector<PyType_Slot> slots = {
        {Py_tp_doc, const_cast<char *>(kDoc)},
        {Py_tp_dealloc, slot(deallocate)},
        {Py_tp_traverse, slot(traverse)},
        {Py_tp_new, slot(create)},
        {Py_tp_repr, slot(represent)},
        {Py_tp_hash, slot(hash)},
        {Py_tp_methods, methods.data()},
        {Py_tp_getset, attributes.data()},
        {Py_tp_members, members},
    };
    slots.insert(slots.end(), parts.slots.begin(), parts.slots.end());
    slots.emplace_back();
    PyType_Spec spec = {"yoke.Tensor", sizeof(TensorObject), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
                        slots.data()};
    tensor_type = reinterpret_cast<PyTypeObject *>(PyType_FromSpec(&spec));
    if (!tensor_type) return false;
    Py_INCREF(tensor_type);
    return PyModule_AddObject(module, "Tensor", reinterpret_cast<PyObject *>(tensor_type)) == 0;
}

PyObject *wrap_tensor(yoke_tensor *handle)
{
    TensorObject *self = allocate();
    if (!self) {
        yoke_tensor_release(handle);
        return nullptr;
    }
    self->handle = handle;
    self->weakrefs = nullptr;
    PyObject_GC_Track(self);
    return &self->ob_base;
}

PyObject *raise_closed(const Place &place)
{
    return raise_error(
        YOKE_E_CLOSED, place.call,
        "argument '%s' is a closed tensor; create a new tensor, or close this tensor later",
        place.argument);
}

yoke_tensor *tensor_argument(PyObject *object, const Place &place)
{
    sync_modes();
    if (!is_tensor(object)) {
        raise_type(place, "a tensor", object);
        return nullptr;
    }
    yoke_tensor *handle = handle_of(object);
    if (!handle) raise_closed(place);
    return handle;
}

bool may_wait(yoke_tensor *tensor)
{
    return yoke_tensor_nbytes(tensor) > kGilBytes ||
           std::strcmp(yoke_device_kind(yoke_tensor_device(tensor)), "cpu") != 0;
}

PyObject *move_tensor(PyObject *self, yoke_device *device, yoke_dtype dtype, bool non_blocking)
{
    yoke_tensor *tensor = tensor_argument(self, {"to", "self"});
    if (!tensor) return nullptr;
    const Hold hold(tensor);
    yoke_tensor *out = nullptr;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release(device != nullptr || may_wait(tensor));
        return yoke_tensor_to_v2(tensor, device, dtype, non_blocking, &out);
    });
    if (status == YOKE_OK && out == tensor) {
        yoke_tensor_release(out);
        return new_reference(self);
    }
    return status ? raise_last_error() : wrap_tensor(out);
}

}  // namespace yoke_python
