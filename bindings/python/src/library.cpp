// library.cpp: version, configuration, random seed, data files and the end.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"

#include "yoke/data.h"
#include "yoke/runtime.h"

namespace yoke_python {
namespace {

py::object config_get(const py::object &key)
{
    const char *value = nullptr;
    check(yoke_config_get(need_text(key, "config_get", "key"), &value));
    return value ? text_of(value) : py::none();
}

void config_set(const py::object &key, const py::object &value)
{
    const char *text = need_text(value, "config_set", "value");
    check(yoke_config_set(need_text(key, "config_set", "key"), text));
}

void shutdown(const py::object &timeout)
{
    const double seconds = need_float(timeout, "shutdown", "timeout");
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_shutdown(seconds);
    }
    check(status);
}

// Returns a seed of 64 bits; negative seeds count from the top, as in NumPy's and PyTorch's C interfaces. Raises
// ValueError for a seed of more bits.
uint64_t need_seed(const py::object &seed, const char *call)
{
    if (!PyIndex_Check(seed.ptr()))
        require(raise_type({call, "seed"}, "an integer", seed.ptr()) != nullptr);
    const py::object number = taken(PyNumber_Index(seed.ptr()));
    int overflow = 0;
    const int64_t small = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
    require(!(small == -1 && PyErr_Occurred()));
    if (!overflow) return static_cast<uint64_t>(small);
    const uint64_t bits = overflow > 0 ? PyLong_AsUnsignedLongLong(number.ptr()) : 0;
    if (overflow > 0 && !PyErr_Occurred()) return bits;
    PyErr_Clear();
    raise_error(YOKE_E_VALUE, call, "argument 'seed' is %R; it must fit in 64 bits", number.ptr());
    throw py::error_already_set();
}

void manual_seed(const py::object &seed)
{
    check(yoke_manual_seed(need_seed(seed, "manual_seed")));
}

py::tuple get_rng_state()
{
    uint64_t seed = 0, offset = 0;
    check(yoke_get_rng_state(&seed, &offset));
    return py::make_tuple(seed, offset);
}

void set_rng_state(const py::object &seed, uint64_t offset)
{
    check(yoke_set_rng_state(need_seed(seed, "Generator"), offset));
}

py::object read_idx(const py::object &path)
{
    const py::bytes bytes = need_path(path, "read_idx", "path");
    const char *text = PyBytes_AS_STRING(bytes.ptr());
    sync_modes();
    yoke_tensor *out = nullptr;
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_read_idx(text, &out);
    }
    check(status);
    return taken(wrap_tensor(out));
}

}  // namespace

void bind_library(py::module_ &module)
{
    module.attr("__version__") = yoke_version();
    module.def("version", yoke_version, "Returns the version of libyoke, such as \"0.1.0\".");
    module.def(
        "build_info", yoke_build_info,
        "Returns lines for people: the compiler, the instruction set in use, and the engines with their versions.");
    module.def("config_get", config_get, py::arg("key"),
               "Returns the effective value of a variable such as \"YOKE_NUM_THREADS\", or None.");
    module.def(
        "config_set", config_set, py::arg("key"), py::arg("value"),
        "Sets a variable in place of the environment; None removes the value. StateError after the first use of the variable, ValueError for an unknown key.");
    module.def(
        "shutdown", shutdown, py::arg("timeout") = 10.0,
        "Waits for all devices, at most `timeout` seconds, and releases cached memory. Any later call starts the library again.");
    module.def(
        "manual_seed", manual_seed, py::arg("seed"),
        "Restarts the random numbers of this thread, on every device, from a seed of 64 bits.");
    module.def("_get_rng_state", get_rng_state);
    module.def("_set_rng_state", set_rng_state, py::arg("seed"), py::arg("offset"));
    module.def("_read_idx", read_idx, py::arg("path"));
}

}  // namespace yoke_python
