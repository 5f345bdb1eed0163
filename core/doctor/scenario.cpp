#ifndef YOKE_WITHOUT_JSON
#include "core/doctor/scenario.h"

#include "core/base/error.h"
#include "core/doctor/checks.h"
#include "core/machine/facts.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace yoke::doctor {

namespace {

using nlohmann::ordered_json;

// Sets a key to a number, if known.
void put_count(ordered_json &to, const char *key, int64_t value)
{
    if (value >= 0) to[key] = value;
}
void put_flag(ordered_json &to, const char *key, int32_t value)
{
    if (value >= 0) to[key] = value == 1;
}
// Sets a key to a rounded measure, if known, in the units of scenarios: whole megahertz, watts, degrees, percent.
void put_measure(ordered_json &to, const char *key, double value, double scale)
{
    if (!std::isnan(value)) to[key] = std::llround(value * scale);
}

ordered_json driver_of(const Facts &facts)
{
    const std::string module = facts.machine.driver, nvml = facts.machine.nvml.version;
    ordered_json driver;
    driver["loaded"] = !module.empty();
    const size_t dot = nvml.find('.');
    if (!module.empty()) driver["module_version"] = module;
    const std::string library = dot != nvml.npos && dot <= 2 ? nvml.substr(dot + 1) : nvml;
    driver["version"] = library.empty() ? (module.empty() ? "0" : module) : library;
    for (const NamedFact &fact : named_facts()) {
        const std::string_view key = fact.key;
        const std::string text = fact.text(facts.machine);
        if (text.empty()) continue;
        if (key == "driver_flavor") driver["flavor"] = text;
        if (key == "cuda_driver") driver["cuda"] = text;
    }
    for (const auto &[name, value] : facts.driver_parameters)
        if (!value.empty() && value.find_first_not_of("0123456789") == value.npos)
            driver["params"][name] = atoll(value.c_str());
    return driver;
}

ordered_json nvml_of(const Facts &facts)
{
    ordered_json nvml;
    nvml["present"] = !facts.machine.nvml.version.empty() || facts.machine.nvml.path != "";
    if (!facts.machine.nvml.version.empty()) nvml["version"] = facts.machine.nvml.version;
    if (nvml_code(facts) > 0) nvml["init_error"] = nvml_code(facts);
    const NvmlFailure &failure = facts.machine.nvml.failure;
    // A hang of the library's own functions, longer than any deadline.
    if (failure.kind == NvmlFailure::Kind::kHung && failure.call.starts_with("nvml"))
        nvml["hang"] = {{"call", failure.call}, {"seconds", 60}};
    return nvml;
}

ordered_json process_of(const yoke_card_process &process)
{
    ordered_json json{{"pid", process.pid}, {"visible", process.visible == 1}};
    put_count(json, "memory", process.memory_used);
    if (process.name[0]) json["name"] = process.name;
    if (process.user[0]) json["user"] = process.user;
    if (process.container[0]) json["container"] = process.container;
    json["kind"] = process.compute == 0 ? "graphics" : "compute";
    return json;
}

void put_link(ordered_json &gpu, const yoke_card_info &info)
{
    ordered_json link;
    put_count(link, "generation", info.link_generation);
    put_count(link, "generation_max", info.link_generation_max);
    put_count(link, "width", info.link_width);
    put_count(link, "width_max", info.link_width_max);
    put_count(link, "replays", info.link_replays);
    if (!link.is_null()) gpu["link"] = link;
}

void put_state(ordered_json &gpu, const yoke_card_info &info)
{
    put_measure(gpu, "utilization", info.utilization, 100);
    put_measure(gpu, "memory_utilization", info.memory_utilization, 100);
    put_measure(gpu, "sm_clock", info.sm_clock, 1e-6);
    put_measure(gpu, "sm_clock_max", info.sm_clock_max, 1e-6);
    put_measure(gpu, "memory_clock", info.memory_clock, 1e-6);
    put_measure(gpu, "memory_clock_max", info.memory_clock_max, 1e-6);
    put_measure(gpu, "power", info.power, 1);
    put_measure(gpu, "power_limit", info.power_limit, 1);
    put_measure(gpu, "power_limit_max", info.power_limit_max, 1);
    put_measure(gpu, "temperature", info.temperature, 1);
    put_measure(gpu, "temperature_slowdown", info.temperature_limit, 1);
    gpu["throttle"] = info.throttle;
    put_flag(gpu, "ecc", info.ecc);
    put_count(gpu, "ecc_corrected", info.ecc_corrected);
    put_count(gpu, "ecc_uncorrected", info.ecc_uncorrected);
    put_flag(gpu, "remap_pending", info.remap_pending);
    put_flag(gpu, "remap_failed", info.remap_failed);
    put_flag(gpu, "mig", info.mig);
    put_count(gpu, "compute_mode", info.compute_mode);
    put_flag(gpu, "persistence", info.persistence);
    put_flag(gpu, "vgpu", info.vgpu);
    if (info.vgpu == 1) gpu["virtualization"] = "vgpu";
    put_flag(gpu, "vgpu_licensed", info.vgpu_licensed);
    if (info.nvlinks > 0) {
        gpu["nvlinks"] = info.nvlinks;
        put_count(gpu, "nvlinks_active", info.nvlinks_active);
    }
    put_flag(gpu, "display", info.display);
    if (info.asleep >= 0) gpu["runtime_status"] = info.asleep ? "suspended" : "active";
}

// Returns the profile of an instance by its name: "1g.10gb" of "NVIDIA H100 80GB HBM3 MIG 1g.10gb".
std::string profile_of(const std::string &name)
{
    const size_t mark = name.rfind("MIG ");
    return mark == name.npos ? name : name.substr(mark + 4);
}

ordered_json gpu_of(const Machine &machine, const Card &card)
{
    const yoke_card_info &info = card.info;
    const unsigned id = static_cast<unsigned>(info.pci_id);
    ordered_json gpu{
        {"name", info.name[0] ? info.name : "NVIDIA GPU"},
        {"pci", info.pci},
        {"pci_id", format("%04x:%04x", id >> 16, id & 0xffff)},
        {"cc", format("%d.%d", std::max(0, info.cc_major), std::max(0, info.cc_minor))},
        {"memory", std::max<int64_t>(0, info.memory_total)}};
    if (info.kind == YOKE_CARD_INTEGRATED) gpu["unified"] = true;
    if (info.uuid[0]) gpu["uuid"] = info.uuid;
    put_count(gpu, "used", info.memory_used);
    put_count(gpu, "reserved", info.memory_reserved);
    put_count(gpu, "multiprocessors", info.multiprocessors);
    put_count(gpu, "minor", info.minor);
    gpu["numa_node"] = info.numa_node;
    if (info.driver[0]) gpu["driver"] = info.driver;
    if (!card.bridges.empty()) gpu["under"] = card.bridges[0];
    put_state(gpu, info);
    put_link(gpu, info);
    for (const Card &part : machine.cards) {
        if (part.info.kind != YOKE_CARD_MIG || part.info.parent != info.index) continue;
        ordered_json instance{{"uuid", part.info.uuid},
                              {"profile", profile_of(part.info.name)},
                              {"memory", std::max<int64_t>(0, part.info.memory_total)}};
        put_count(instance, "multiprocessors", part.info.multiprocessors);
        put_count(instance, "gpu_instance", part.gpu_instance);
        put_count(instance, "compute_instance", part.compute_instance);
        gpu["mig_instances"].push_back(instance);
    }
    for (const yoke_card_process &process : card.processes)
        gpu["processes"].push_back(process_of(process));
    return gpu;
}

ordered_json other_of(const Card &card)
{
    const unsigned id = static_cast<unsigned>(card.info.pci_id);
    ordered_json other{{"vendor", format("%04x", id >> 16)},
                       {"device", format("%04x", id & 0xffff)},
                       {"class", "030000"},
                       {"pci", card.info.pci}};
    if (card.info.driver[0]) other["driver"] = card.info.driver;
    if (card.info.name[0]) other["name"] = card.info.name;
    if (!card.bridges.empty()) other["under"] = card.bridges[0];
    return other;
}

void put_bridges(ordered_json &scenario, const std::vector<std::string> &way)
{
    for (size_t i = 0; i < way.size(); ++i) {
        ordered_json &bridge = scenario["bridges"][way[i]];
        if (bridge.is_null()) bridge = ordered_json::object();
        if (i + 1 < way.size()) bridge["parent"] = way[i + 1];
    }
}

// Returns the pairs with NVLinks, direct or through a switch: the places of both cards among the scenario's cards,
// and the number of links.
ordered_json nvlinks_of(const Machine &machine, const std::vector<int> &gpus)
{
    ordered_json pairs = ordered_json::array();
    for (size_t a = 0; a < gpus.size(); ++a)
        for (size_t b = a + 1; b < gpus.size(); ++b)
            if (const int links = machine.link(gpus[a], gpus[b]).nvlinks; links > 0)
                pairs.push_back({a, b, links});
    return pairs;
}

void put_networks(ordered_json &scenario, const Machine &machine)
{
    for (const NetworkCard &network : machine.networks) {
        const yoke_network_card &info = network.info;
        ordered_json json{{"name", info.name},
                          {"pci", info.pci},
                          {"layer", info.layer},
                          {"state", info.state},
                          {"numa_node", info.numa_node}};
        if (info.rate > 0) json["rate"] = format("%g Gb/sec", info.rate / 1e9);
        if (!network.bridges.empty()) json["under"] = network.bridges[0];
        scenario["networks"].push_back(json);
        put_bridges(scenario, network.bridges);
    }
}

}  // namespace

ordered_json scenario_of(const Facts &facts)
{
    const Machine &machine = facts.machine;
    ordered_json scenario{{"about", "Recorded by the doctor"},
                          {"driver", driver_of(facts)},
                          {"nvml", nvml_of(facts)},
                          {"gpus", ordered_json::array()}};
    std::vector<int> listed;
    std::vector<std::pair<int, int>> order;  // NVML's index, the scenario's
    for (size_t i = 0; i < machine.cards.size(); ++i) {
        const Card &card = machine.cards[i];
        const bool is_own = std::string_view(card.info.vendor) == "nvidia";
        const bool is_part = is_own && card.info.kind == YOKE_CARD_INTEGRATED && card.info.pci[0];
        if (card.info.kind != YOKE_CARD_GPU && !is_part) continue;
        put_bridges(scenario, card.bridges);
        if (!is_own) {
            scenario["other_cards"].push_back(other_of(card));
            continue;
        }
        if (card.info.nvml_index >= 0)
            order.emplace_back(card.info.nvml_index, static_cast<int>(listed.size()));
        constexpr int kLost = 15;
        if (card.info.present == 0 && !scenario["nvml"].contains("lost"))
            scenario["nvml"]["lost"] = {
                {"gpu", listed.size()}, {"after_calls", 0}, {"code", kLost}};
        listed.push_back(static_cast<int>(i));
        scenario["gpus"].push_back(gpu_of(machine, card));
    }
    std::sort(order.begin(), order.end());
    for (const auto &[index, place] : order)
        if (order.size() == listed.size()) scenario["nvml"]["order"].push_back(place);
    const ordered_json pairs = nvlinks_of(machine, listed);
    if (!pairs.empty()) scenario["nvlink"] = pairs;
    put_networks(scenario, machine);
    return scenario;
}

}  // namespace yoke::doctor

#endif  // YOKE_WITHOUT_JSON
