// Reading the scenario, and reading it again when it changes.
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>

#include "tests/fakes/edge/nvml/fake.h"

namespace yoke::fake_nvml {

static const Json kNone;

ulonglong bytes_of(const Json &value)
{
    if (value.is_number()) return value.get<ulonglong>();
    static const std::map<std::string, double> kUnits = {
        {"B", 1},         {"kB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
        {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1099511627776.0}};
    char *unit = nullptr;
    const std::string text = value.get<std::string>();
    const double amount = strtod(text.c_str(), &unit);
    while (*unit == ' ') ++unit;
    return static_cast<ulonglong>(amount * kUnits.at(unit));
}

std::optional<double> Gpu::number_of(const char *key) const
{
    const auto found = keys.find(key);
    if (found == keys.end() || found->is_null()) return std::nullopt;
    return found->is_boolean() ? (found->get<bool>() ? 1.0 : 0.0) : found->get<double>();
}

std::string Gpu::text(const char *key, const char *otherwise) const
{
    return keys.value(key, otherwise);
}

bool Gpu::flag(const char *key) const
{
    return keys.value(key, false);
}

ulonglong Gpu::bytes(const char *key) const
{
    const auto found = keys.find(key);
    return found == keys.end() ? 0 : bytes_of(*found);
}

const Json &Gpu::instances() const
{
    const auto found = keys.find("mig_instances");
    return found == keys.end() ? kNone : *found;
}

std::vector<Json> Gpu::processes(int instance) const
{
    std::vector<Json> found;
    for (const Json &process : keys.value("processes", Json::array()))
        if (instance < 0 || process.value("instance", -1) == instance) found.push_back(process);
    return found;
}

const Json &Scenario::section(const char *name) const
{
    const auto found = keys.find(name);
    return found == keys.end() ? kNone : *found;
}

int Scenario::switch_links() const
{
    const auto found = keys.find("nvlink");
    if (found == keys.end() || !found->is_string()) return 0;
    return atoi(found->get<std::string>().c_str() + 4);
}

int Scenario::links(int a, int b) const
{
    if (switch_links()) return a == b ? 0 : switch_links();
    int links = 0;
    for (const Json &link : keys.value("nvlink", Json::array()))
        if ((link[0] == a && link[1] == b) || (link[0] == b && link[1] == a))
            links += link[2].get<int>();
    return links;
}

// The bridges above a card, its own port first.
static std::vector<std::string> bridges_above(const Json &keys, std::string address)
{
    std::vector<std::string> found;
    const Json bridges = keys.value("bridges", Json::object());
    while (!address.empty() && found.size() < 64) {
        found.push_back(address);
        address = bridges.value(address, Json::object()).value("parent", "");
    }
    return found;
}

// NVML numbers the cards that NVIDIA's driver holds, by their PCI addresses unless the scenario says otherwise.
static std::vector<int> order_of(const Scenario &scenario)
{
    std::vector<int> order;
    if (scenario.nvml().contains("order"))
        order = scenario.nvml()["order"].get<std::vector<int>>();
    else
        for (const Gpu &gpu : scenario.gpus) order.push_back(gpu.number);
    const auto address = [&](int one) {
        return scenario.gpus[static_cast<size_t>(one)].text("pci");
    };
    if (!scenario.nvml().contains("order"))
        std::sort(order.begin(), order.end(),
                  [&](int a, int b) { return address(a) < address(b); });
    std::erase_if(order, [&](int one) {
        return scenario.gpus[static_cast<size_t>(one)].text("driver", "nvidia") != "nvidia";
    });
    return order;
}

static std::shared_ptr<const Scenario> read(const char *path)
{
    auto made = std::make_shared<Scenario>();
    std::ifstream file(path);
    made->keys = Json::parse(file);
    for (const Json &keys : made->keys.value("gpus", Json::array())) {
        Gpu gpu;
        gpu.number = static_cast<int>(made->gpus.size());
        gpu.keys = keys;
        gpu.bridges = bridges_above(made->keys, keys.value("under", ""));
        if (gpu.number < kMaxGpus) made->gpus.push_back(std::move(gpu));
    }
    made->order = order_of(*made);
    return made;
}

// A file that cannot be read, or only half written, leaves what was there before.
std::shared_ptr<const Scenario> scenario()
{
    static std::mutex mutex;
    static std::shared_ptr<const Scenario> *const last =
        new std::shared_ptr<const Scenario>(std::make_shared<Scenario>());
    static timespec time{};
    static auto *const of = new std::string;
    const char *path = getenv("YOKE_FAKE_SCENARIO");
    struct stat state {};
    const std::lock_guard lock(mutex);
    if (!path || stat(path, &state)) return *last;
    const timespec &now = state.st_mtim;
    const bool same = *of == path;
    if (same && now.tv_sec == time.tv_sec && now.tv_nsec == time.tv_nsec) return *last;
    try {
        if (!same) forget_calls();
        *last = read(path);
        time = now;
        *of = path;
    } catch (const std::exception &error) {
        fprintf(stderr, "fake NVML: %s: %s\n", path, error.what());
    }
    return *last;
}

}  // namespace yoke::fake_nvml
