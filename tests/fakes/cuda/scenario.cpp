// Reading the devices of the fake driver out of a scenario. See machine.h.
#include "tests/fakes/cuda/scenario.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include <nlohmann/json.hpp>

#include "tests/fakes/cuda/visible.h"

namespace yoke::fake {

namespace {

using Json = nlohmann::json;

enum { kNoDevice = 100, kMismatch = 803, kUnavailable = 46 };

// As tests/fakes/edge reads sizes: a number of bytes, or text with a unit.
size_t bytes_of(const Json &value)
{
    if (value.is_number()) return value.get<size_t>();
    static const std::map<std::string, double> kUnits = {
        {"B", 1},         {"kB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
        {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1099511627776.0}};
    const std::string text = value.get<std::string>();
    char *unit = nullptr;
    const double amount = strtod(text.c_str(), &unit);
    while (*unit == ' ') ++unit;
    return static_cast<size_t>(amount * kUnits.at(unit));
}

size_t bytes_of(const Json &keys, const char *key)
{
    return keys.contains(key) ? bytes_of(keys[key]) : 0;
}

void read_uuid(const std::string &text, unsigned char (&uuid)[16])
{
    std::string digits;
    for (const char c : text.substr(std::min(text.size(), size_t{4})))
        if (isxdigit(static_cast<unsigned char>(c))) digits += c;
    for (size_t i = 0; i < 16 && 2 * i + 2 <= digits.size(); ++i)
        uuid[i] = static_cast<unsigned char>(std::stoul(digits.substr(2 * i, 2), nullptr, 16));
}

// Returns the memory of other users: the scenario's figure, or the sum of its processes; plus the driver's own
// memory.
size_t used_of(const Json &card)
{
    size_t used = bytes_of(card, "used");
    if (!used)
        for (const Json &process : card.value("processes", Json::array()))
            used += bytes_of(process, "memory");
    return used + bytes_of(card, "reserved");
}

// Refuses a context if the card is prohibited, or if another process has exclusive use.
int refusal_of(const Json &card)
{
    const int mode = card.value("compute_mode", 0);
    const bool busy = !card.value("processes", Json::array()).empty();
    return mode == 2 || (mode == 3 && busy) ? kUnavailable : 0;
}

fake_device device_of(const Json &card, const Json *instance)
{
    fake_device made{};
    const Json &part = instance ? *instance : card;
    std::string name = card.value("name", "");
    if (instance) name += " MIG " + instance->value("profile", "");
    snprintf(made.name, sizeof made.name, "%s", name.c_str());
    read_uuid(part.value("uuid", "GPU-"), made.uuid);
    const auto address = card.value("pci", std::string("0000:00:00.0"));
    unsigned domain = 0, bus = 0, slot = 0;
    sscanf(address.c_str(), "%x:%x:%x", &domain, &bus, &slot);
    made.domain = static_cast<int>(domain);
    made.bus = static_cast<int>(bus);
    made.slot = static_cast<int>(slot);
    sscanf(card.value("cc", std::string()).c_str(), "%d.%d", &made.major, &made.minor);
    made.multiprocessors = part.value("multiprocessors", 1);
    made.total = bytes_of(part, "memory");
    made.used = std::min(made.total, instance ? bytes_of(part, "used") : used_of(card));
    made.refuses = refusal_of(card);
    return made;
}

double speed_of(const Json &card)
{
    return card.value("multiprocessors", 1.0) * card.value("sm_clock_max", 1.0);
}

// Returns the cards of NVIDIA's driver, in CUDA's order: by address, or the fastest first.
std::vector<Json> cards_of(const Json &scenario)
{
    std::vector<Json> cards;
    for (const Json &card : scenario.value("gpus", Json::array()))
        if (card.value("driver", "nvidia") == "nvidia") cards.push_back(card);
    std::sort(cards.begin(), cards.end(),
              [](const Json &a, const Json &b) { return a.at("pci") < b.at("pci"); });
    const char *order = getenv("CUDA_DEVICE_ORDER");
    if (!order || strcmp(order, "PCI_BUS_ID") != 0)
        std::stable_sort(cards.begin(), cards.end(),
                         [](const Json &a, const Json &b) { return speed_of(a) > speed_of(b); });
    return cards;
}

void add_devices(CudaMachine &machine, const Json &scenario)
{
    const Json driver = scenario.value("driver", Json::object());
    std::vector<Json> cards;
    if (driver.value("loaded", true)) cards = cards_of(scenario);
    if (scenario.contains("integrated")) cards.push_back(scenario["integrated"]);
    std::vector<Choice> choices;
    for (const Json &card : cards) {
        Choice choice{card.value("uuid", ""), {}, card.value("mig", false)};
        for (const Json &instance : card.value("mig_instances", Json::array()))
            choice.instances.push_back(instance.value("uuid", ""));
        choices.push_back(std::move(choice));
    }
    const char *variable = getenv("CUDA_VISIBLE_DEVICES");
    for (const Chosen &one :
         visible(choices, variable ? std::optional<std::string>(variable) : std::nullopt)) {
        const Json &card = cards[static_cast<size_t>(one.card)];
        machine.devices.push_back(device_of(
            card, one.instance < 0 ? nullptr
                                   : &card["mig_instances"][static_cast<size_t>(one.instance)]));
    }
    if (machine.devices.size() > FAKE_MAX_DEVICES) machine.devices.resize(FAKE_MAX_DEVICES);
}

}  // namespace

CudaMachine read_scenario(const char *path)
{
    CudaMachine machine;
    std::ifstream file(path);
    const Json scenario = Json::parse(file);
    const Json driver = scenario.value("driver", Json::object());
    int major = 13, minor = 0;
    sscanf(driver.value("cuda", std::string()).c_str(), "%d.%d", &major, &minor);
    machine.version = major * 1000 + minor * 10;
    const std::string version = driver.value("version", "");
    if (driver.value("loaded", true) && driver.value("module_version", version) != version)
        machine.problem = kMismatch;
    else if (scenario.value("nvml", Json::object()).value("init_error", 0) == 4)
        machine.problem = kNoDevice;  // the device files cannot be opened
    else
        add_devices(machine, scenario);
    return machine;
}

}  // namespace yoke::fake
