// state.cpp: states in files, and work that goes on; yoke/_state.py has the script's interfaces.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/interrupt.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"
#include "bindings/python/src/values/work.h"

#include <memory>

namespace yoke_python {

namespace {

// Function `names` of a script, and its error.
struct Wanted {
    py::object function;
    std::unique_ptr<py::error_already_set> error;
};

int32_t ask_wanted(void *user, const char *name)
{
    auto &wanted = *static_cast<Wanted *>(user);
    const py::gil_scoped_acquire gil;
    if (wanted.error) return 0;
    try {
        const int truth = PyObject_IsTrue(wanted.function(text_of(name)).ptr());
        require(truth >= 0);
        return truth;
    } catch (py::error_already_set &error) {
        wanted.error = std::make_unique<py::error_already_set>(std::move(error));
        return 0;
    }
}

py::object load(const py::object &path, const py::object &device, bool mmap,
                const py::object &dtype, const py::object &names)
{
    constexpr const char *call = "load";
    const py::bytes file = need_path(path, call, "path");
    yoke_load_options options{};
    options.struct_size = sizeof options;
    options.copy = !mmap;
    require(to_dtype(dtype.ptr(), {call, "dtype"}, &options.dtype) &&
            to_device(device.ptr(), {call, "device"}, &options.device));
    Wanted wanted;
    if (PyUnicode_Check(names.ptr())) {
        options.prefix = need_text(names, call, "names");
    } else if (PyCallable_Check(names.ptr())) {
        wanted.function = names;
        options.wanted = ask_wanted;
        options.user = &wanted;
    } else if (!names.is_none()) {
        require(raise_type({call, "names"}, "a prefix or a function", names.ptr()) != nullptr);
    }
    const char *text = PyBytes_AS_STRING(file.ptr());
    yoke_state *found = nullptr;
    const yoke_status status = with_relief([&] {
        const ReleaseGil release;
        return yoke_load(text, &options, &found);
    });
    const StateRef state(found);
    if (wanted.error) throw py::error_already_set(std::move(*wanted.error));
    check(status);
    return value_of(state.get());
}

py::object load_info(const py::object &path)
{
    const py::bytes file = need_path(path, "load_info", "path");
    yoke_state *found = nullptr;
    yoke_status status = YOKE_OK;
    {
        const char *text = PyBytes_AS_STRING(file.ptr());
        const ReleaseGil release;
        status = yoke_load_info(text, &found);
    }
    const StateRef state(found);
    check(status);
    return value_of(state.get());
}

void check_schedule(const py::object &state, int64_t groups)
{
    check(yoke_schedule_check(state_of(state, "load_state_dict", "state_dict").get(), groups));
}

// Returns a number of bytes, or a text with its unit, as text. Raises TypeError for any other value.
std::string max_shard_text(const py::object &value)
{
    const bool is_number = PyLong_Check(value.ptr()) && !PyBool_Check(value.ptr());
    if (!is_number && !PyUnicode_Check(value.ptr()))
        require(raise_type({"save", "max_shard"},
                           "a number of bytes, a text such as '5GiB', or None",
                           value.ptr()) != nullptr);
    return need_text(py::str(value), "save", "max_shard");
}

py::object save(const py::object &path, const py::object &state, const py::object &metadata,
                bool blocking, const py::object &max_shard)
{
    const py::bytes file = need_path(path, "save", "path");
    const StateRef tree = state_of(state, "save", "state");
    const StateRef about = metadata.is_none() ? nullptr : state_of(metadata, "save", "metadata");
    yoke_save_options options{};
    options.struct_size = sizeof options;
    options.non_blocking = !blocking;
    options.metadata = about.get();
    std::string most;
    if (!max_shard.is_none()) options.max_shard = (most = max_shard_text(max_shard)).c_str();
    yoke_work *work = nullptr;
    yoke_status status = YOKE_OK;
    {
        const char *text = PyBytes_AS_STRING(file.ptr());
        const Relieved relieved;
        const ReleaseGil release;
        status = yoke_save(text, tree.get(), &options, &work);
    }
    check(status);
    return object_of(work);
}

}  // namespace

void bind_state(py::module_ &module)
{
    require(init_interrupts());
    py::class_<Work> type = bound_class<Work>(
        module, "Work", "Work that continues after its call has returned, such as a save.");
    refuse_calls(
        type,
        "yoke.save(path, state, blocking=False) and a collective with async_op=True return a Work");
    type.def(
            "wait", &Work::wait, py::arg("timeout") = py::none(),
            "Waits for the end of the work, at most `timeout` seconds, then TimeoutError. Raises the error of failed work. For a collective on a GPU, without a timeout, the host waits only for the host's part, and the current stream for the rest.")
        .def("done", &Work::done, "Returns whether the work has ended, with or without an error.")
        .def("progress", &Work::progress, "Returns (finished bytes, all bytes).");
    module.def("_save", save, py::arg("path"), py::arg("state"), py::arg("metadata"),
               py::arg("blocking"), py::arg("max_shard"));
    module.def("_load", load, py::arg("path"), py::arg("device"), py::arg("mmap"), py::arg("dtype"),
               py::arg("names"));
    module.def("_load_info", load_info, py::arg("path"));
    module.def("_check_schedule", check_schedule, py::arg("state"), py::arg("groups"));
}

}  // namespace yoke_python
