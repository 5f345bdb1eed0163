// module.cpp: yoke._yoke, the C part of the package, over the public C API alone.
//
// The hot path (Tensor and ops) is plain CPython; pybind11 carries what is called now and then.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/runtime/log.h"
#include "bindings/python/src/runtime/other_names.h"
#include "bindings/python/src/runtime/parameters.h"
#include "bindings/python/src/runtime/refusal.h"
#include "bindings/python/src/runtime/relief.h"
#include "bindings/python/src/values/checkpoint.h"
#include "bindings/python/src/values/dtype.h"
#include "bindings/python/src/values/invoke.h"
#include "bindings/python/src/values/make.h"
#include "bindings/python/src/values/modes.h"
#include "bindings/python/src/values/numbers.h"

#include "yoke/runtime.h"

#include "yoke/runtime.h"

#include <pybind11/stl.h>

#include <string>
#include <vector>

namespace yoke_python {
namespace {

PyMethodDef functions[] = {
    {"tensor", keywords(tensor_function), kKeywords,
     "tensor(data, dtype=None, device=None, requires_grad=False)\n--\n\n"
     "Returns a new tensor with a copy of `data`: a number, nested sequences of numbers, a NumPy array or any\n"
     "other buffer, or a tensor. Ints give int64, floats float32, bools bool; a buffer keeps its dtype.\n"
     "ValueError, with the place, for ragged lists and for numbers that the dtype cannot hold."},
    {"device", keywords(device_function), kKeywords,
     "device(spec, index=None)\n--\n\n"
     "Returns the device of a spec (\"cpu\", \"cuda:1\", \"uuid:GPU-89\", \"pci:0000:65:00.0\", \"auto:min_free=8GiB,exclude=egpu\", see\n"
     "docs/devices.md), of a kind and an index (\"cuda\", 1), or of an index of the current kind.\n"
     "ValueError for an invalid spec; DeviceUnavailableError says why the device cannot be used."},
    {"from_dlpack", keywords(with_argument<"from_dlpack", "x", from_dlpack>), kKeywords,
     "from_dlpack(x)\n--\n\n"
     "Returns a tensor over the memory of `x`, an object with __dlpack__ or a capsule, without a copy.\n"
     "UnsupportedError for a dtype or device that Yoke does not support, and for read-only memory."},
    {},
};

// Refuses subinterpreters. A process has a single free list and set of types; a subinterpreter would share them
// without sharing the lock.
void require_main_interpreter()
{
    if (PyInterpreterState_Get() != PyInterpreterState_Main())
        throw py::import_error(
            "yoke works only in the main interpreter of a process, not in a subinterpreter");
}

// pybind11's base of all classes throws through Python's C code, and so ends the process, if a script makes an
// instance of the base: yoke.Stream.__base__().
newfunc make_instance;

PyObject *make_bound(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    if (!py::detail::all_type_info(type).empty()) return make_instance(type, args, keywords);
    return PyErr_Format(PyExc_TypeError, "%.200s has no instances", type->tp_name);
}

void guard_instances()
{
    auto *base = reinterpret_cast<PyTypeObject *>(py::detail::get_internals().instance_base);
    if (base->tp_new == make_bound) return;
    make_instance = std::exchange(base->tp_new, make_bound);
}

TensorParts tensor_parts()
{
    TensorParts parts;
    for (const auto add :
         {add_methods, add_attributes, add_habits, add_words, add_numbers, add_dlpack, add_hooks,
          add_operators, add_index, add_buffer, add_op_methods})
        add(parts);
    return parts;
}

void add_functions(py::module_ &module)
{
    const py::str package("yoke");
    for (PyMethodDef *function = functions; function->ml_name; function++)
        module.attr(function->ml_name) = taken(PyCFunction_NewEx(function, nullptr, package.ptr()));
}

using Words = std::vector<std::string>;

std::vector<const char *> pointers(const Words &words)
{
    std::vector<const char *> texts;
    for (const std::string &each : words) texts.push_back(each.c_str());
    return texts;
}

}  // namespace
}  // namespace yoke_python

PYBIND11_MODULE(_yoke, module)
{
    using namespace yoke_python;
    require_main_interpreter();
    module.doc() = "The C part of the package yoke.";
    py::options options;
    options.disable_function_signatures();  // the stubs have the types
    require(init_errors(module.ptr()) && init_dtypes(module.ptr()) && init_ops() &&
            init_tensor(module.ptr(), tensor_parts()) && add_op_functions(module.ptr()) &&
            add_foreign_names(tensor_type));
    add_functions(module);
    guard_instances();
    bind_devices(module);
    bind_streams(module);
    bind_library(module);
    bind_memory(module);
    bind_relief(module);
    bind_storage(module);
    bind_modes(module);
    bind_autograd(module);
    bind_hooks(module);
    bind_optimizer(module);
    bind_training(module);
    bind_checkpoint(module);
    bind_state(module);
    bind_checkpoints(module);
    bind_comm(module);
    bind_parallel(module);
    bind_jobs(module);
    bind_preempt(module);
    bind_graph(module);
    bind_doctor(module);
    bind_inventory(module);
    bind_select(module);
    module.def("_require_main_interpreter", require_main_interpreter);
    module.def("_unknown_keyword", [](const py::str &name, const Words &known, bool is_ours) {
        return taken(unknown_keyword(name.ptr(), pointers(known).data(),
                                     static_cast<int>(known.size()), is_ours));
    });
    module.def("_other_name", [](const std::string &call, const std::string &name,
                                 const Words &known) {
        const OtherName found = find_other_name(call.c_str(), name.c_str(), pointers(known).data(),
                                                static_cast<int>(known.size()));
        if (found.place < 0) return py::object(py::none());
        return py::object(py::make_tuple(known[static_cast<size_t>(found.place)], found.is_flag));
    });
    module.def("_meant_word", [](const std::string &text, const Words &known) {
        const char *const meant = yoke_meant_word(text.c_str(), pointers(known).data(),
                                                  static_cast<int64_t>(known.size()));
        return meant ? py::object(py::str(meant)) : py::none();
    });
    name_refusals(module);
    module.def("_foreign_name", [](const std::string &place, const std::string &name) {
        return foreign_name(place.c_str(), name.c_str());
    });
    module.def("_nearest_name", [](const std::string &name, const std::vector<std::string> &known) {
        std::vector<const char *> names;
        for (const std::string &each : known) names.push_back(each.c_str());
        return yoke_meant_word(name.c_str(), names.data(), static_cast<int64_t>(names.size()));
    });
    require(init_log() && init_relief());
}
