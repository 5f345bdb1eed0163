// device.h: the Python class Device as an argument and as a result; device.cpp of the folder above binds it.
#pragma once

#include "bindings/python/src/runtime/bind.h"

namespace yoke_python {

struct Device : Bound {
    explicit Device(yoke_device *device) : handle(device) {}
    yoke_device *handle;  // devices live as long as the library
};

// Returns the only Python object of a device, so that `is`, == and hash agree: a new reference, or null with a Python
// error set.
PyObject *device_object(yoke_device *device);

// Puts the handle of a Device into *out. Returns false, with no error set, if the object is no Device.
bool device_handle(PyObject *object, yoke_device **out);

}  // namespace yoke_python
