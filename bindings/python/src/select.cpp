// select.cpp: choice of devices by their properties, leases, switching kinds off, and the facts of a device.
// _devices.py makes the keyword forms.
#include "bindings/python/src/leaves.h"
#include "bindings/python/src/values/device.h"
#include "bindings/python/src/values/need.h"

#include "yoke/device.h"
#include "yoke/select.h"

#include <cmath>
#include <vector>

namespace yoke_python {
namespace {

yoke_card_info card_of(yoke_device *device)
{
    yoke_card_info card{};
    card.struct_size = sizeof card;
    check(yoke_device_card(device, &card));
    return card;
}

yoke_card_info measured(yoke_device *device)
{
    yoke_card_info card{};
    card.struct_size = sizeof card;
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_device_sample(device, &card);
    }
    check(status);
    return card;
}

// Returns a measure as a float; None for an unknown value.
py::object measure(double value)
{
    return std::isnan(value) ? py::none() : py::object(py::float_(value));
}
py::object count(int64_t value)
{
    return value < 0 ? py::none() : py::object(py::int_(value));
}

py::dict sample(yoke_device *device)
{
    const yoke_card_info card = measured(device);
    py::dict told;
    told["utilization"] = measure(card.utilization);
    told["memory_used"] = count(card.memory_used);
    told["memory_free"] = count(card.memory_free);
    told["memory_total"] = count(card.memory_total);
    told["watts"] = measure(card.power);
    told["temperature"] = measure(card.temperature);
    told["sm_clock"] = measure(card.sm_clock);
    told["memory_clock"] = measure(card.memory_clock);
    told["processes"] = count(card.process_count);
    return told;
}

py::object capability(yoke_device *device)
{
    const yoke_card_info card = card_of(device);
    if (card.cc_major < 0) return py::none();
    return py::make_tuple(card.cc_major, card.cc_minor);
}

py::str link(yoke_device *device)
{
    const yoke_card_info card = measured(device);
    const int32_t generation =
        card.link_generation_max > 0 ? card.link_generation_max : card.link_generation;
    const int32_t width = card.link_width > 0 ? card.link_width : card.link_width_max;
    if (generation <= 0 || width <= 0) return "";
    return "PCIe " + std::to_string(generation) + ".0 x" + std::to_string(width);
}

py::list select(const py::object &spec, const py::object &n)
{
    const char *text = need_text(spec, "select", "spec");
    const int64_t wanted = n.is_none() ? 1 : need_int(n, "select", "n");
    if (wanted < 1 || wanted > 4096)
        require(raise_error(YOKE_E_VALUE, "select",
                            "argument 'n' is %R; it must be a number of devices, 1 or more",
                            n.ptr()) != nullptr);
    std::vector<yoke_device *> devices(static_cast<size_t>(wanted));
    const bool is_counted = !n.is_none();
    int32_t found = 0;
    yoke_status status;
    {
        const ReleaseGil release;
        const auto room = static_cast<int32_t>(wanted);
        status = yoke_select(text, is_counted ? room : 0, devices.data(), room, &found);
    }
    check(status);
    py::list all;
    for (int32_t i = 0; i < found; i++) {
        yoke_device_release(
            devices[static_cast<size_t>(i)]);  // devices live as long as the library
        all.append(taken(device_object(devices[static_cast<size_t>(i)])));
    }
    return all;
}

// Explanation, released at the end in any case.
struct Explanation {
    yoke_explanation *handle = nullptr;
    Explanation() = default;
    Explanation(const Explanation &) = delete;
    Explanation &operator=(const Explanation &) = delete;
    ~Explanation() { yoke_explanation_release(handle); }
};

// Returns a candidate's name: "cuda:1", or for a card without a number its name and UUID.
py::object candidate_name(const Explanation &explanation, const yoke_candidate &one)
{
    if (*one.device || one.card < 0) return text_of(one.device);
    yoke_card_info card{};
    card.struct_size = sizeof card;
    check(yoke_inventory_card(yoke_explanation_inventory(explanation.handle), one.card, &card));
    return text_of(card.name) + py::str(" (") + text_of(*card.uuid ? card.uuid : card.pci) +
           py::str(")");
}

py::tuple explain(const py::object &spec)
{
    const char *text = need_text(spec, "explain", "spec");
    Explanation explanation;
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_explain(text, &explanation.handle);
    }
    check(status);
    py::list all;
    for (int32_t i = 0, n = yoke_explanation_count(explanation.handle); i < n; i++) {
        yoke_candidate one{};
        one.struct_size = sizeof one;
        check(yoke_explanation_get(explanation.handle, i, &one));
        all.append(py::make_tuple(candidate_name(explanation, one), one.accepted == 1,
                                  text_of(one.reason)));
    }
    return py::make_tuple(all, text_of(yoke_explanation_problem(explanation.handle)),
                          text_of(yoke_explanation_visible(explanation.handle)));
}

int32_t lease_holder(const py::object &uuid)
{
    yoke_device *device = nullptr;
    const char *text = device_handle(uuid.ptr(), &device) ? yoke_device_spec(device)
                                                          : need_text(uuid, "lease_holder", "uuid");
    int32_t pid = 0;
    check(yoke_lease_holder(text ? text : "", &pid));
    return pid;
}

void disable(const py::object &kind)
{
    const char *text = need_kind(kind, "disable");
    yoke_status status;
    {
        const ReleaseGil release;
        status = yoke_disable(text);
    }
    check(status);
}

// Binds attributes of Device, a class of device.cpp: the inventory's facts of its card.
void bind_card(const py::object &type)
{
    const py::object property = py::module_::import("builtins").attr("property");
    const auto attribute = [&](const char *name, auto function, const char *text) {
        const auto read = [name, function](const py::object &device) {
            return py::object(function(need_device(device, name)));
        };
        type.attr(name) =
            property(py::cpp_function(read, py::name(name)), py::none(), py::none(), text);
    };
    attribute(
        "uuid", [](yoke_device *d) { return text_of(card_of(d).uuid); },
        "UUID of the card, such as \"GPU-8932f937-…\"; \"\" without a UUID.");
    attribute(
        "pci", [](yoke_device *d) { return text_of(card_of(d).pci); },
        "PCI address of the card, such as \"0000:65:00.0\"; \"\" without an address.");
    attribute("compute_capability", capability,
              "Compute capability of a CUDA device, such as (9, 0); None for other devices.");
    attribute(
        "multiprocessors", [](yoke_device *d) { return count(card_of(d).multiprocessors); },
        "Number of multiprocessors; None if unknown.");
    attribute(
        "is_egpu", [](yoke_device *d) { return py::bool_(measured(d).is_egpu == 1); },
        "True if the device is behind Thunderbolt or USB4, or in a removable slot.");
    attribute(
        "link", link,
        "Best possible link of the card to the host, such as \"PCIe 5.0 x16\"; \"\" if unknown.");
}

// Binds functions that return objects of _devices.py's classes; _devices.py is read at their first use.
void bind_objects(const py::object &type)
{
    const auto from_devices = [](const char *function) {
        return [function](const py::object &device) {
            return py::module_::import("yoke._devices").attr(function)(device);
        };
    };
    const auto method = [&](const char *name, const char *function, const char *text) {
        type.attr(name) =
            py::cpp_function(from_devices(function), py::name(name), py::is_method(type), text);
    };
    method(
        "take_lease", "_take_lease",
        "Takes the lease of the device: no other process can take the lease until it is released.\n"
        "DeviceUnavailableError names the process that holds the lease.");
    method("sample", "_sample",
           "Returns the present figures of the device, such as free memory and temperature.");
    type.attr("lease") =
        py::module_::import("builtins")
            .attr("property")(py::cpp_function(from_devices("_lease_of")), py::none(), py::none(),
                              "Lease of the device that this process holds, or None.");
}

}  // namespace

void bind_select(py::module_ &module)
{
    const py::object type = module.attr("Device");
    bind_card(type);
    bind_objects(type);
    module.def("_device_sample",
               [](const py::object &d) { return sample(need_device(d, "sample")); });
    module.def("_device_is_leased", [](const py::object &d) {
        return yoke_device_is_leased(need_device(d, "lease")) == 1;
    });
    module.def("_lease",
               [](const py::object &d) { check(yoke_device_lease(need_device(d, "lease"))); });
    module.def("_release_lease", [](const py::object &d) {
        check(yoke_device_release_lease(need_device(d, "release")));
    });
    module.def("_select", select);
    module.def("_explain", explain);
    module.def(
        "lease_holder", lease_holder, py::arg("uuid"),
        "Returns the pid of the process that holds the lease of a card: 0 without a holder, -1 for an unknown holder.\nThe card is a Device, or a text: a UUID or its beginning, a PCI address, or \"cuda:0\". ValueError for any other text.");
    module.def(
        "disable", disable, py::arg("kind"),
        "Disables a kind of devices from now on; if the kind was not used yet, no part of it is ever loaded.\n"
        "StateError, with names, while tensors, streams or groups of the kind exist. Calls are counted: see enable().");
    module.def(
        "enable", [](const py::object &kind) { check(yoke_enable(need_kind(kind, "enable"))); },
        py::arg("kind"), "Undoes one call of disable().");
}

}  // namespace yoke_python
