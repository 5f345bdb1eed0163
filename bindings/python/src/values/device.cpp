#include "bindings/python/src/values/device.h"

#include <unordered_map>

namespace yoke_python {

PyObject *device_object(yoke_device *device)
{
    static auto &objects = *new std::unordered_map<yoke_device *, PyObject *>;  // never freed
    const auto known = objects.find(device);
    if (known != objects.end()) return new_reference(known->second);
    try {
        PyObject *made = py::cast(Device{device}).release().ptr();
        objects.emplace(device, made);
        return new_reference(made);
    } catch (py::error_already_set &error) {
        error.restore();
        return nullptr;
    }
}

bool device_handle(PyObject *object, yoke_device **out)
{
    const Device *device = object_in<Device>(object);
    if (device) *out = device->handle;
    return device != nullptr;
}

}  // namespace yoke_python
