// fake.h: declarations for the files of the fake NVML library: the scenario, handles, and the beginning of every
// call.
//
// The library answers from the scenario named by YOKE_FAKE_SCENARIO, and reads the file again after a change. Wrong
// use gets NVML's answers: before nvmlInit UNINITIALIZED, for NULL or an unknown handle INVALID_ARGUMENT, for a key
// missing in the card NOT_SUPPORTED. FAKE_NVML_CALLS names a file for a line a call: the name and the card's PCI
// address.
#pragma once

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fakes/edge/nvml/abi.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace yoke::fake_nvml {

using Json = nlohmann::json;

constexpr int kMaxGpus = 64, kMaxInstances = 16;

// Target of nvmlDevice_t: a card, by place in the scenario, or a MIG instance of the card.
struct Handle {
    int gpu, instance;
};

// Returns a size in bytes: a number, or text with a unit.
ulonglong bytes_of(const Json &value);

// Card of the scenario. A missing key means: the card does not support the call.
struct Gpu {
    int number = -1;  // in the scenario's list
    Json keys;
    std::vector<std::string> bridges;  // upwards

    std::optional<double> number_of(const char *key) const;
    std::string text(const char *key, const char *otherwise = "") const;
    bool flag(const char *key) const;
    ulonglong bytes(const char *key) const;  // 0 for none
    const Json &instances() const;
    // Returns the processes on the card, or on an instance of the card.
    std::vector<Json> processes(int instance) const;
};

struct Scenario {
    Json keys;
    std::vector<Gpu> gpus;
    std::vector<int> order;  // NVML's index -> place in the list

    const Json &nvml() const { return section("nvml"); }
    const Json &driver() const { return section("driver"); }
    const Json &section(const char *name) const;
    // NVLinks between two cards; the number of a card's links that are joined to a switch.
    int links(int a, int b) const;
    int switch_links() const;
};

// Returns the scenario as of now. A caller's copy does not change.
std::shared_ptr<const Scenario> scenario();

Handle *handle_of(int gpu, int instance = -1);

// ---- the way into a call --------------------------------------------------------------------------------------------

// Notes the call, hangs or fails as the scenario says. `gpu`: -1 for none.
Return enter(const char *call, const Scenario &scenario, int gpu);
// Hangs or loses the card that a call without a handle found, if the scenario says so.
Return enter_card(const char *call, const Scenario &scenario, int gpu);
bool is_initialized();
// Forgets all calls, because another machine's cards have had no calls yet.
void forget_calls();
// Gives the code that a struct with this version field is answered with.
Return check_version(const Scenario &scenario, const char *name, uint given, uint wanted);

using Pointers = std::initializer_list<const void *>;

inline bool any_null(Pointers pointers)
{
    for (const void *pointer : pointers)
        if (!pointer) return true;
    return false;
}

// Returns the card of a handle, or the code for a wrong handle.
Return look_up(const Scenario &scenario, const Handle *device, bool instances_too);

// A call about the machine: `work` gets the scenario.
// If the scenario has a value that the call cannot take, prints a line on stderr and returns UNKNOWN.
Return tell(const char *call, const std::exception &error);

template <class Work>
int on_system(const char *call, Pointers out, Work work)
{
    const auto now = scenario();
    if (const Return code = enter(call, *now, -1)) return code;
    if (any_null(out)) return kInvalidArgument;
    try {
        return work(*now);
    } catch (const std::exception &error) {
        return tell(call, error);
    }
}

template <class Work>
int on_handle(const char *call, const Handle *device, Pointers out, bool instances, Work work)
{
    const auto now = scenario();
    const Return wrong = look_up(*now, device, instances);
    if (const Return code = enter(call, *now, wrong == kInvalidArgument ? -1 : device->gpu))
        return code;
    if (wrong) return wrong;
    if (any_null(out)) return kInvalidArgument;
    try {
        return work(*now, now->gpus[static_cast<size_t>(device->gpu)]);
    } catch (const std::exception &error) {
        return tell(call, error);
    }
}

// A call about a whole card: `work` gets the scenario and the card.
template <class Work>
int on_gpu(const char *call, const Handle *device, Pointers out, Work work)
{
    return on_handle(call, device, out, false, work);
}

// A call that MIG instances answer too: `work` gets the instance, NULL for a whole card.
template <class Work>
int on_any(const char *call, const Handle *device, Pointers out, Work work)
{
    return on_handle(call, device, out, true, [&](const Scenario &all, const Gpu &gpu) {
        const Json *instance = device->instance < 0
                                   ? nullptr
                                   : &gpu.instances()[static_cast<size_t>(device->instance)];
        return work(all, gpu, instance);
    });
}

// ---- answers --------------------------------------------------------------------------------------------------------

// Gets a key's value times a factor; NOT_SUPPORTED if the card has no such key.
template <class Number>
Return tell(const Gpu &gpu, const char *key, Number *out, double factor = 1)
{
    const std::optional<double> value = gpu.number_of(key);
    if (!value) return kNotSupported;
    *out = static_cast<Number>(*value * factor + 0.5);
    return kSuccess;
}

Return tell_text(const std::string &text, char *out, uint length);

// Fills a list of the caller's: `count` is its capacity at first, then the number of entries.
template <class Item>
Return tell_list(const std::vector<Item> &items, uint *count, Item *out)
{
    const uint room = *count;
    *count = static_cast<uint>(items.size());
    if (room < items.size()) return kInsufficientSize;
    if (!items.empty() && !out) return kInvalidArgument;
    std::copy(items.begin(), items.end(), out);
    return kSuccess;
}

}  // namespace yoke::fake_nvml
