#include "core/machine/facts.h"

#include "core/base/error.h"
#include "core/base/text.h"

namespace yoke {

namespace {

std::string flavor(const Machine &machine)
{
    constexpr const char *kNames[] = {"", "open", "proprietary"};
    return kNames[static_cast<int>(machine.driver_flavor)];
}

std::string cuda_driver(const Machine &machine)
{
    const int cuda = machine.cuda_driver;
    return cuda > 0 ? format("%d.%d", cuda / 1000, cuda % 1000 / 10) : "";
}

std::string docks(const Machine &machine)
{
    return joined(machine.docks, "; ", [](const UnauthorizedDock &dock) {
        return format(
            "the dock %s is not authorized, so nothing in it is on the bus: boltctl enroll --policy auto %s",
            dock.name.c_str(),
            dock.uuid.empty() ? "UUID (boltctl list names it)" : dock.uuid.c_str());
    });
}

constexpr NamedFact kFacts[] = {
    {"driver", [](const Machine &machine) { return machine.driver; }},
    {"driver_flavor", flavor},
    {"nvml", [](const Machine &machine) { return machine.nvml.version; }},
    {"nvml_path", [](const Machine &machine) { return machine.nvml.path; }},
    {"nvml_problem", [](const Machine &machine) { return nvml_failure_text(machine); }},
    {"cuda_driver", cuda_driver},
    {"visible_devices", [](const Machine &machine) { return machine.visible_problem; }},
    {"docks", docks},
    {"container", [](const Machine &machine) { return machine.container; }},
    {"virtual_machine", [](const Machine &machine) { return machine.virtual_machine; }},
};

}  // namespace

std::span<const NamedFact> named_facts() noexcept
{
    return kFacts;
}

}  // namespace yoke
