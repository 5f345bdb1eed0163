// memory.cpp: what the allocator holds, under the names of torch.cuda.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/need.h"
#include "bindings/python/src/values/tree.h"

#include "yoke/memory.h"

namespace yoke_python {
namespace {

using Statistic = yoke_status (*)(yoke_device *, int64_t *);

int64_t ask(Statistic statistic, const py::object &device, const char *call)
{
    int64_t bytes = 0;
    check(statistic(need_device(device, call), &bytes));
    return bytes;
}

void def_statistic(py::module_ &module, const char *name, Statistic statistic, const char *doc)
{
    module.def(
        name, [=](const py::object &device) { return ask(statistic, device, name); },
        py::arg("device") = py::none(), doc);
}

}  // namespace

void bind_memory(py::module_ &module)
{
    def_statistic(module, "memory_allocated", yoke_memory_allocated,
                  "Returns the bytes of allocated blocks now.");
    def_statistic(module, "max_memory_allocated", yoke_max_memory_allocated,
                  "Returns the maximum of memory_allocated since the start or the last reset.");
    def_statistic(module, "memory_reserved", yoke_memory_reserved,
                  "Returns the bytes that the allocator has from the driver now.");
    def_statistic(module, "max_memory_reserved", yoke_max_memory_reserved,
                  "Returns the maximum of memory_reserved since the start or the last reset.");
    module.def(
        "memory_cached",
        [](const py::object &device) {
            return ask(yoke_memory_reserved, device, "memory_cached") -
                   ask(yoke_memory_allocated, device, "memory_cached");
        },
        py::arg("device") = py::none(), "Returns the bytes that are reserved and not allocated.");
    module.def(
        "reset_peak_memory_stats",
        [](const py::object &device) {
            check(yoke_reset_peak_memory_stats(need_device(device, "reset_peak_memory_stats")));
        },
        py::arg("device") = py::none(), "Resets both maxima to the present values.");
    module.def(
        "memory_stats",
        [](const py::object &device) {
            yoke_state *found = nullptr;
            check(yoke_memory_stats(need_device(device, "memory_stats"), &found));
            const StateRef stats(found);
            return value_of(stats.get());
        },
        py::arg("device") = py::none(),
        "Returns all statistics of a device's memory, under the keys of torch.cuda.memory_stats and some more (docs/memory.md).");
    module.def(
        "reset_accumulated_memory_stats",
        [](const py::object &device) {
            check(yoke_reset_accumulated_memory_stats(
                need_device(device, "reset_accumulated_memory_stats")));
        },
        py::arg("device") = py::none(), "Resets the totals and counts of memory_stats to 0.");
    module.def(
        "empty_cache",
        [](const py::object &device) {
            check(yoke_empty_cache(need_device(device, "empty_cache")));
        },
        py::arg("device") = py::none(), "Returns every cached block to the driver.");
    module.def(
        "set_caching",
        [](const py::object &on) {
            check(yoke_set_caching(need_bool(on, "set_caching", "enabled")));
        },
        py::arg("enabled"),
        "Turns the caching of freed blocks on or off, on all devices. Without caching every free reaches the driver.");
    module.def(
        "is_caching", [] { return yoke_is_caching() == 1; },
        "Returns whether freed blocks are kept for the next request.");
    module.def(
        "set_alloc_conf",
        [](const py::object &settings) {
            check(yoke_set_alloc_conf(need_text(settings, "set_alloc_conf", "settings")));
        },
        py::arg("settings"),
        "Changes the allocator's settings named in a text such as 'ask_fences:True,expandable_segments:False'; other settings stay.");
    module.def(
        "get_alloc_conf",
        [] {
            const char *settings = nullptr;
            check(yoke_get_alloc_conf(&settings));
            return std::string(settings);
        },
        "Returns the allocator's settings, as set_alloc_conf takes them.");
    module.def(
        "live_tensor_count", yoke_live_tensor_count,
        "Returns the number of tensors in the process: of Python, of other host programs, and those that the tape keeps (saved_tensors).");
    module.def(
        "shares_memory",
        [](const py::object &a, const py::object &b) {
            return yoke_shares_memory(need_tensor(a, "shares_memory", "a"),
                                      need_tensor(b, "shares_memory", "b")) == 1;
        },
        py::arg("a"), py::arg("b"),
        "Returns whether two tensors have a common byte. If their strides do not fit in a common grid, as those of slices of a dense tensor do, compares the outer bounds only.");
}

}  // namespace yoke_python
