// tensor.h: the Python type Tensor and how a C handle gets into and out of it.
//
// A hand-written heap type, since its number slots are the hot path: an object holds one reference
// to a yoke_tensor, comes from a free list, is seen by the garbage collector and may be referred to
// weakly. close() drops the reference; a closed object holds null.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/tensor.h"

#include <vector>

namespace yoke_python {

struct TensorObject {
    PyObject ob_base;
    yoke_tensor *handle;  // null: closed
    PyObject *weakrefs;
};

extern PyTypeObject *tensor_type;

// Tables of the type, one or more from each file with a part of the type.
struct TensorParts {
    std::vector<PyMethodDef> methods;
    std::vector<PyGetSetDef> attributes;
    std::vector<PyType_Slot> slots;

    template <size_t kCount>
    void add(const PyMethodDef (&table)[kCount])
    {
        methods.insert(methods.end(), table, table + kCount);
    }
    template <size_t kCount>
    void add(const PyGetSetDef (&table)[kCount])
    {
        attributes.insert(attributes.end(), table, table + kCount);
    }
    template <size_t kCount>
    void add(const PyType_Slot (&table)[kCount])
    {
        slots.insert(slots.end(), table, table + kCount);
    }
};

// Makes the type and adds it to the module. Returns false with a Python error set on failure.
bool init_tensor(PyObject *module, const TensorParts &parts);

// Returns a Python object that owns `handle`; takes the reference even on failure.
PyObject *wrap_tensor(yoke_tensor *handle);

inline bool is_tensor(PyObject *object)
{
    return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// Returns the handle of a tensor, null if closed. Does not check whether the object is a tensor.
inline yoke_tensor *handle_of(PyObject *object)
{
    return reinterpret_cast<TensorObject *>(object)->handle;
}

// Raises ClosedError for a tensor that was closed. Returns null.
PyObject *raise_closed(const Place &place);

// Returns the handle of an argument; null with a TypeError or ClosedError set.
yoke_tensor *tensor_argument(PyObject *object, const Place &place);

// Hold on tensors for the length of a call, because other Python code may run and close them.
class Hold {
public:
    explicit Hold(yoke_tensor *tensor) : tensor_(yoke_tensor_retain(tensor)) {}
    ~Hold() { yoke_tensor_release(tensor_); }
    Hold(const Hold &) = delete;
    Hold &operator=(const Hold &) = delete;

private:
    yoke_tensor *tensor_;
};

// Up to this many bytes a call is shorter than handing the GIL over and back is worth.
constexpr int64_t kGilBytes = 64 * 1024;

// Returns whether a read of this tensor may take long: large, or on an asynchronous device.
bool may_wait(yoke_tensor *tensor);

// Returns self.to(device, dtype); null or NONE: unchanged. If nothing changes, returns the same object.
PyObject *move_tensor(PyObject *self, yoke_device *device, yoke_dtype dtype, bool non_blocking);

}  // namespace yoke_python
