// relief.cpp: functions of the script that may free memory; yoke/_memory.py has the script's interface.
#include "bindings/python/src/runtime/relief.h"
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/device.h"

#include "yoke/memory.h"

#include <memory>

namespace yoke_python {

namespace {

int32_t ask_function(void *function, yoke_device *device, int64_t bytes) noexcept
{
    return run_amid("a function of on_out_of_memory", [&] {
        const py::object given =
            (*static_cast<py::object *>(function))(taken(device_object(device)), bytes);
        const int truth = PyObject_IsTrue(given.ptr());
        if (truth < 0) throw py::error_already_set();
        return truth;
    });
}

void drop_function(void *function)
{
    if (!Py_IsInitialized()) return;
    const py::gil_scoped_acquire held;
    delete static_cast<py::object *>(function);
}

int64_t add_function(const py::object &function)
{
    if (!PyCallable_Check(function.ptr()))
        require(raise_type({"on_out_of_memory", "fn"}, "a function (device, bytes)",
                           function.ptr()) != nullptr);
    auto held = std::make_unique<py::object>(function);
    int64_t id = 0;
    check(yoke_on_out_of_memory(ask_function, held.get(), drop_function, &id));
    held.release();
    return id;
}

}  // namespace

void bind_relief(py::module_ &module)
{
    module.def("_add_on_out_of_memory", add_function, py::arg("fn"));
    module.def("_remove_on_out_of_memory", [](int64_t id) {
        yoke_status status = YOKE_OK;
        {
            const ReleaseGil release;
            status = yoke_remove_on_out_of_memory(id);
        }
        check(status);
    });
}

}  // namespace yoke_python
