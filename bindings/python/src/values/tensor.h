// tensor.h: the Python type Tensor and how a C handle gets into and out of it.
//
// A hand-written heap type, since its number slots are the hot path: an object holds one reference
// to a yoke_tensor, comes from a free list, is seen by the garbage collector and may be referred to
// weakly. close() drops the reference; a closed object holds null.
#pragma once

#include "bindings/python/src/runtime/error.h"

#include "yoke/tensor.h"

#include <atomic>

namespace yoke_python {

struct TensorObject {
    PyObject ob_base;
    yoke_tensor *handle;  // null: closed
    PyObject *weakrefs;
};

extern PyTypeObject *tensor_type;

// Makes the type and adds it to the module. The op table must have been read.
bool init_tensor(PyObject *module);

// A Python object that owns `handle`, whose reference it takes, also on failure.
PyObject *wrap_tensor(yoke_tensor *handle);

inline bool is_tensor(PyObject *object)
{
    return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// Unchecked: the object is a tensor.
inline yoke_tensor *handle_of(PyObject *object)
{
    return reinterpret_cast<TensorObject *>(object)->handle;
}

// modes.h says what these are for.
extern std::atomic<int> modes_count;  // Modes objects, and threads where one is in force
void sync_modes_now();
inline void sync_modes()
{
    if (modes_count.load(std::memory_order_relaxed)) [[unlikely]]
        sync_modes_now();
}

// The handle of an argument; null with a TypeError or ClosedError set.
yoke_tensor *tensor_argument(PyObject *object, const Place &place);

// Holds tensors for the length of a call in which other Python code may run and close them.
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

// Lets other Python threads run until the end of the scope, if `wanted`.
class ReleaseGil {
public:
    explicit ReleaseGil(bool wanted = true) : state_(wanted ? PyEval_SaveThread() : nullptr) {}
    // While the interpreter ends, CPython takes a daemon thread away here, by unwinding its stack.
    ~ReleaseGil() noexcept(false)
    {
        if (state_) PyEval_RestoreThread(state_);
    }
    ReleaseGil(const ReleaseGil &) = delete;
    ReleaseGil &operator=(const ReleaseGil &) = delete;

private:
    PyThreadState *state_;
};

// Whether reading this tensor may take long: large, or on a device that runs on its own.
bool may_wait(yoke_tensor *tensor);

// self.to(device, dtype), for null or NONE what it has; where nothing changes, the very same object.
PyObject *move_tensor(PyObject *self, yoke_device *device, yoke_dtype dtype, bool non_blocking);

// The pieces that the type is put together from.
extern PyMethodDef tensor_methods[];        // methods.cpp, ends with a null entry
extern PyGetSetDef tensor_attributes[];     // attributes.cpp
PyObject *tensor_to_list(PyObject *self);   // numbers.cpp: nested lists of numbers
PyObject *tensor_item(PyObject *self);      // numbers.cpp: one number
int tensor_truth(PyObject *self);           // numbers.cpp
PyObject *tensor_float(PyObject *self);     // numbers.cpp
PyObject *tensor_int(PyObject *self);       // numbers.cpp
PyObject *tensor_as_index(PyObject *self);  // numbers.cpp
Py_ssize_t tensor_length(PyObject *self);   // index.cpp
PyObject *tensor_iterate(PyObject *self);   // index.cpp
PyObject *tensor_get(PyObject *self, Py_ssize_t position);
PyObject *tensor_subscript(PyObject *self, PyObject *key);
int tensor_assign(PyObject *self, PyObject *key, PyObject *value);
int tensor_get_buffer(PyObject *self, Py_buffer *view, int flags);  // buffer.cpp
void tensor_release_buffer(PyObject *self, Py_buffer *view);

}  // namespace yoke_python
