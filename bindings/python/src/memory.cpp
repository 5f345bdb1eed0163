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
    def_statistic(module, "memory_allocated", yoke_memory_allocated, "Bytes of live blocks now.");
    def_statistic(module, "max_memory_allocated", yoke_max_memory_allocated,
                  "The most bytes of live blocks since the start or the last reset.");
    def_statistic(module, "memory_reserved", yoke_memory_reserved,
                  "Bytes held from the driver now.");
    def_statistic(module, "max_memory_reserved", yoke_max_memory_reserved,
                  "The most bytes held from the driver since the start or the last reset.");
    module.def(
        "memory_cached",
        [](const py::object &device) {
            return ask(yoke_memory_reserved, device, "memory_cached") -
                   ask(yoke_memory_allocated, device, "memory_cached");
        },
        py::arg("device") = py::none(), "Bytes reserved and not allocated.");
    module.def(
        "reset_peak_memory_stats",
        [](const py::object &device) {
            check(yoke_reset_peak_memory_stats(need_device(device, "reset_peak_memory_stats")));
        },
        py::arg("device") = py::none(), "Both maxima start again from the present values.");
    module.def(
        "memory_stats",
        [](const py::object &device) {
            yoke_state *found = nullptr;
            check(yoke_memory_stats(need_device(device, "memory_stats"), &found));
            const StateRef stats(found);
            return value_of(stats.get());
        },
        py::arg("device") = py::none(),
        "All that is known of a device's memory, by the keys of torch.cuda.memory_stats and some more (docs/memory.md).");
    module.def(
        "reset_accumulated_memory_stats",
        [](const py::object &device) {
            check(yoke_reset_accumulated_memory_stats(
                need_device(device, "reset_accumulated_memory_stats")));
        },
        py::arg("device") = py::none(), "Totals and counts of memory_stats start again from 0.");
    module.def(
        "empty_cache",
        [](const py::object &device) {
            check(yoke_empty_cache(need_device(device, "empty_cache")));
        },
        py::arg("device") = py::none(), "Gives every cached block back to the driver.");
    module.def(
        "set_caching",
        [](const py::object &on) {
            check(yoke_set_caching(need_bool(on, "set_caching", "enabled")));
        },
        py::arg("enabled"),
        "Caching of freed blocks on or off, on all devices. Off, every free reaches the driver.");
    module.def(
        "is_caching", [] { return yoke_is_caching() == 1; },
        "Whether freed blocks are kept for the next request.");
    module.def(
        "set_alloc_conf",
        [](const py::object &settings) {
            check(yoke_set_alloc_conf(need_text(settings, "set_alloc_conf", "settings")));
        },
        py::arg("settings"),
        "Changes the allocator's settings that a text names, 'ask_fences:True,expandable_segments:False'; the others stay.");
    module.def(
        "get_alloc_conf",
        [] {
            const char *settings = nullptr;
            check(yoke_get_alloc_conf(&settings));
            return std::string(settings);
        },
        "The allocator's settings, as set_alloc_conf takes them.");
    module.def(
        "live_tensor_count", yoke_live_tensor_count,
        "Tensors alive in the process, Python's and other hosts', and each that the tape keeps (saved_tensors).");
    module.def(
        "shares_memory",
        [](const py::object &a, const py::object &b) {
            return yoke_shares_memory(need_tensor(a, "shares_memory", "a"),
                                      need_tensor(b, "shares_memory", "b")) == 1;
        },
        py::arg("a"), py::arg("b"),
        "Whether two tensors reach a common byte; where their strides do not nest in one grid, as those of slices of a dense tensor do, whether their outer bounds meet.");
}

}  // namespace yoke_python
