// device.cpp: the class Device and the functions for choice, description and waits.
#include "bindings/python/src/values/device.h"
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/values/convert.h"
#include "bindings/python/src/values/modes.h"
#include "bindings/python/src/values/need.h"

#include "yoke/amp.h"
#include "yoke/device.h"
#include "yoke/engines.h"
#include "yoke/select.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace yoke_python {
namespace {

yoke_device *handle(const Device &device)
{
    return device.handle;
}

py::object object_for(yoke_device *device)
{
    return taken(device_object(device));
}

py::object enter(py::object self)
{
    static_cast<void>(self.cast<Device &>());
    enter_block(self, "device", self);
    return self;
}

void leave(const py::object &self, const py::args &)
{
    static_cast<void>(self.cast<Device &>());
    leave_block(self);
}

std::pair<int64_t, int64_t> memory_of(yoke_device *device)
{
    int64_t free_bytes = 0, total_bytes = 0;
    yoke_status status;
    {
        const ReleaseGil release;  // the first use of a device makes its context
        status = yoke_device_memory(device, &free_bytes, &total_bytes);
    }
    check(status);
    return {free_bytes, total_bytes};
}

// Returns the memory of the device's card, by the inventory: to read an attribute must cost no context.
int64_t total_memory_of(yoke_device *device)
{
    yoke_card_info card{};
    card.struct_size = sizeof card;
    check(yoke_device_card(device, &card));
    return card.memory_total;
}

void synchronize(yoke_device *device)
{
    wait_in([&] { return yoke_device_synchronize(device); });
}

bool supports(const Device &device, const py::object &dtype, const py::object &feature)
{
    yoke_dtype wanted = YOKE_NONE;
    int32_t has = 0;
    require(to_dtype(dtype.ptr(), {"supports", "dtype"}, &wanted));
    check(yoke_device_supports(handle(device), wanted, need_text(feature, "supports", "feature"),
                               &has));
    return has == 1;
}

int32_t count_of(const char *kind)
{
    int32_t count = 0;
    yoke_status status;
    {
        const ReleaseGil release;  // the first look at the devices
        status = yoke_device_count(kind, &count);
    }
    check(status);
    return count;
}

py::list devices(const py::object &kind)
{
    py::list found;
    const char *only = need_text(kind, "devices", "kind");
    for (const char *name : {"cuda", "cpu"}) {
        if (only ? std::string_view(only) != name : false) continue;
        for (int32_t i = 0, n = count_of(name); i < n; i++) {
            yoke_device *device = nullptr;
            check(yoke_device_get(name, i, &device));
            yoke_device_release(device);
            found.append(object_for(device));
        }
    }
    if (only && found.empty()) count_of(only);  // an unknown kind is an error
    return found;
}

// Returns the device of set_device: a bare index counts accelerators, but to_device would count devices of the
// current kind.
yoke_device *accelerator_or_device(const py::object &value)
{
    sync_modes();
    if (!PyLong_Check(value.ptr()) || PyBool_Check(value.ptr()))
        return need_device(value, "set_device");
    const int64_t index = need_int(value, "set_device", "device");
    if (index < 0 || index > INT32_MAX)
        require(raise_error(YOKE_E_INDEX, "set_device",
                            "argument 'device' is device %lld; indices count from 0",
                            static_cast<long long>(index)) != nullptr);
    yoke_device *device = nullptr;
    yoke_status status;
    {
        const ReleaseGil release;  // the first look at the devices
        status = yoke_accelerator_get(static_cast<int32_t>(index), &device);
    }
    if (status) {
        raise_last_error("set_device");
        throw py::error_already_set();
    }
    yoke_device_release(device);
    return device;
}

void bind_class(py::module_ &module)
{
    py::class_<Device> type(  // copies are the device itself
        module, "Device",
        "Device, as yoke.device(spec) returns it. `with device:` makes the device current in this thread or task.");
    refuse_calls(type, "write yoke.device(spec), such as yoke.device('cpu')");
    type.def_property_readonly(
            "kind", [](const Device &d) { return yoke_device_kind(handle(d)); },
            "\"cpu\" or \"cuda\".")
        .def_property_readonly(
            "type", [](const Device &d) { return yoke_device_kind(handle(d)); },
            "PyTorch's name of `kind`.")
        .def_property_readonly(
            "index", [](const Device &d) { return yoke_device_index(handle(d)); },
            "Index among the devices of the same kind.")
        .def_property_readonly(
            "name", [](const Device &d) { return text_of(yoke_device_name(handle(d))); },
            "Name that the maker gave the device.")
        .def_property_readonly(
            "free_memory", [](const Device &d) { return memory_of(handle(d)).first; },
            "Bytes that are free now, as the driver reports.")
        .def_property_readonly(
            "total_memory", [](const Device &d) { return total_memory_of(handle(d)); },
            "Bytes of the whole memory of the device.")
        .def(
            "synchronize", [](const Device &d) { synchronize(handle(d)); },
            "Waits until all work given to the device has finished.")
        .def(
            "supports", supports, py::arg("dtype"), py::arg("feature") = "compute",
            "Returns whether the device has a feature for a dtype. \"compute\": ops accept the dtype. \"tensor_cores\": special units multiply matrices of the dtype faster than float32 (on a CPU: AVX512-BF16).")
        .def("__enter__", enter)
        .def("__exit__", leave)
        .def("__str__", [](const Device &d) { return yoke_device_spec(handle(d)); })
        .def("__repr__",
             [](const Device &d) {
                 return py::str("yoke.device('{}')").format(yoke_device_spec(handle(d)));
             })
        .def("__reduce_ex__", [](const Device &d, const py::object &) {
            return py::make_tuple(py::module_::import("yoke").attr("device"),
                                  py::make_tuple(yoke_device_spec(handle(d))));
        });
}

// Switches behind yoke.backends, and deterministic algorithms.
void bind_backends(py::module_ &module)
{
    module.def("_set_allow_tf32", [](const py::object &on) {
        check(yoke_set_allow_tf32(need_bool(on, "backends", "allow_tf32")));
    });
    module.def("_get_allow_tf32", [] {
        const int32_t allowed = yoke_get_allow_tf32();
        if (allowed < 0) require(raise_last_error() != nullptr);
        return allowed == 1;
    });
    module.def(
        "use_deterministic_algorithms",
        [](const py::object &mode) {
            check(yoke_use_deterministic_algorithms(
                need_bool(mode, "use_deterministic_algorithms", "mode")));
        },
        py::arg("mode"),
        "Sets whether ops give the same bits in each run, in the whole process. False at first. The CPU always does.");
    module.def(
        "are_deterministic_algorithms_enabled",
        [] {
            const int32_t enabled = yoke_are_deterministic_algorithms_enabled();
            if (enabled < 0) require(raise_last_error() != nullptr);
            return enabled == 1;
        },
        "Returns whether use_deterministic_algorithms asks for the same bits in each run.");
    module.def("_set_weak_zero_dim",
               [](bool weak) { check(yoke_set_weak_zero_dim(weak ? 1 : 0)); });
    module.def("_set_default_dtype", [](const py::object &dtype) {
        yoke_dtype wanted = YOKE_NONE;
        require(to_dtype(dtype.ptr(), {"set_default_dtype", "d"}, &wanted));
        check(yoke_set_default_dtype(wanted));
    });
    module.def("_get_default_dtype", [] { return taken(dtype_object(yoke_get_default_dtype())); });
    module.def("_set_foreign_card", &set_foreign_card);
    module.def("_cudnn_set", [](int32_t setting, const char *name, const py::object &value) {
        const bool is_limit =
            setting == YOKE_CUDNN_BENCHMARK_LIMIT || setting == YOKE_CUDNN_WORKSPACE_LIMIT;
        check(yoke_cudnn_set(setting, is_limit ? need_int(value, "backends.cudnn", name)
                                               : need_bool(value, "backends.cudnn", name)));
    });
    module.def("_cudnn_get", [](int32_t setting) {
        int64_t value = 0;
        check(yoke_cudnn_get(setting, &value));
        return value;
    });
    module.def("_cudnn_version", [] {
        const int64_t version = yoke_cudnn_version();
        if (version < 0) require(raise_last_error() != nullptr);
        return version;
    });
    module.def("_cudnn_why_unavailable", [] { return text_of(yoke_cudnn_why_unavailable()); });
}

void bind_threads(py::module_ &module)
{
    module.def(
        "set_num_threads",
        [](const py::object &n) {
            const int64_t count = need_int(n, "set_num_threads", "n");
            if (count > INT32_MAX)
                require(raise_error(YOKE_E_VALUE, "set_num_threads",
                                    "argument 'n' is %R; it must fit in 32 bits",
                                    n.ptr()) != nullptr);
            check(yoke_set_num_threads(static_cast<int32_t>(std::max<int64_t>(count, INT32_MIN))));
        },
        py::arg("n"),
        "Sets the number of CPU threads that an op may use, for the whole process; 0 is the default.");
    module.def(
        "get_num_threads",
        [] {
            const int32_t count = yoke_get_num_threads();
            if (count < 0) require(raise_last_error() != nullptr);
            return count;
        },
        "Returns the number of CPU threads that an op may use: set_num_threads, else YOKE_NUM_THREADS, else OMP_NUM_THREADS, else the processors of the process.");
}

}  // namespace

// Returns whether the spec waits. Then _devices.py waits between attempts, so that Ctrl-C ends the wait.
static bool does_wait(PyObject *spec)
{
    if (!PyUnicode_Check(spec)) return false;
    Py_ssize_t length = 0;
    const char *text = PyUnicode_AsUTF8AndSize(spec, &length);
    if (!text) PyErr_Clear();  // the next reader of the argument reports the problem
    return text && std::string_view(text, static_cast<size_t>(length)).find("wait") !=
                       std::string_view::npos;
}

static PyObject *waiting_device(PyObject *spec)
{
    PyObject *module = PyImport_ImportModule("yoke._devices");
    if (!module) return nullptr;
    PyObject *device = PyObject_CallMethod(module, "_device", "O", spec);
    Py_DECREF(module);
    return device;
}

// Returns the device of a kind and an index: device("cuda", 1).
static PyObject *device_at(PyObject *kind, PyObject *index)
{
    const char *text = nullptr;
    int64_t number = 0;
    yoke_device *device = nullptr;
    if (!to_text(kind, {"device", "spec"}, &text) || !to_int64(index, {"device", "index"}, &number))
        return nullptr;
    if (std::strchr(text, ':') || number < 0 || number > INT32_MAX)
        return raise_error(
            YOKE_E_VALUE, "device",
            "arguments 'spec' and 'index' are \"%s\" and %lld; give a kind and an index from 0, or a spec alone",
            text, static_cast<long long>(number));
    PyObject *spec = PyUnicode_FromFormat("%s:%lld", text, static_cast<long long>(number));
    const bool ok = spec && to_device(spec, {"device", "spec"}, &device);
    Py_XDECREF(spec);
    return ok ? device_object(device) : nullptr;
}

PyObject *device_function(PyObject *, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    static const char *const kNames[] = {"spec", "index"};
    PyObject *values[2] = {nullptr, Py_None};
    yoke_device *device = nullptr;
    if (!read_parameters("device", kNames, 2, 0, args, count, keywords, values)) return nullptr;
    if (values[1] != Py_None) return device_at(values[0], values[1]);
    if (does_wait(values[0])) return waiting_device(values[0]);
    if (!to_device_or_current(values[0], {"device", "spec"}, &device)) return nullptr;
    return device_object(device);
}

void bind_devices(py::module_ &module)
{
    bind_class(module);
    bind_threads(module);
    bind_backends(module);
    const py::arg_v kind_or_none("kind", py::none());
    const py::arg_v device_or_none("device", py::none());
    module.def("_open",
               [](const py::object &spec) { return object_for(need_device(spec, "device")); });
    module.def("devices", devices, kind_or_none,
               "Returns the usable devices in order, of a kind or of all kinds.");
    module.def(
        "device_count",
        [](const py::object &k) { return count_of(need_text(k, "device_count", "kind")); },
        kind_or_none, "Returns the number of usable devices, of a kind or of all kinds.");
    module.def(
        "is_available",
        [](const py::object &k) {
            const char *kind = need_text(k, "is_available", "kind");
            const bool available = yoke_is_available(kind) == 1;
            if (kind && !available) count_of(kind);  // an unknown kind is an error
            return available;
        },
        kind_or_none,
        "Returns whether a device of a kind can be used now; without a kind, whether any accelerator can be used. ValueError for an unknown kind.");
    module.def(
        "why_unavailable",
        [](const py::object &k) {
            return text_of(yoke_why_unavailable(need_kind(k, "why_unavailable")));
        },
        py::arg("kind"),
        "Returns why no device of a kind can be used, with a remedy; \"\" if a device can be used.");
    module.def(
        "set_device",
        [](const py::object &d) {
            yoke_device *device = accelerator_or_device(d);
            if (!override_mode("device", object_for(device))) check(yoke_set_device(device));
        },
        py::arg("device"),
        "Sets the current device of this thread. An index without a kind never means the CPU: if the CPU is the current device, the index counts the first available kind of accelerators.");
    module.def(
        "current_device", [] { return object_for(need_device(py::none(), "current_device")); },
        "Returns the current device of this thread.");
    module.def(
        "synchronize", [](const py::object &d) { synchronize(need_device(d, "synchronize")); },
        device_or_none, "Waits until all work given to the device has finished.");
    module.def(
        "mem_get_info",
        [](const py::object &d) { return memory_of(need_device(d, "mem_get_info")); },
        device_or_none, "Returns (free, total) bytes of the device, as the driver reports.");
}

}  // namespace yoke_python
