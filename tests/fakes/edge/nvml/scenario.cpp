// Reading of the scenario, at first and after changes.
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>

#include "tests/fakes/edge/nvml/fake.h"

namespace yoke::fake_nvml {

static const Json kNone, kNoKeys = Json::object(), kNoList = Json::array();

static const Json &part_of(const Json &keys, const char *name, const Json &otherwise)
{
    const auto found = keys.find(name);
    return found == keys.end() ? otherwise : *found;
}

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
    for (const Json &process : part_of(keys, "processes", kNoList))
        if (instance < 0 || process.value("instance", -1) == instance) found.push_back(process);
    return found;
}

const Json &Scenario::section(const char *name) const
{
    const auto found = keys.find(name);
    return found == keys.end() ? kNoKeys : *found;
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
    for (const Json &link : part_of(keys, "nvlink", kNoList))
        if ((link[0] == a && link[1] == b) || (link[0] == b && link[1] == a))
            links += link[2].get<int>();
    return links;
}

// Returns the bridges above a card, its own port first.
static std::vector<std::string> bridges_above(const Json &keys, std::string address)
{
    std::vector<std::string> found;
    const Json &bridges = part_of(keys, "bridges", kNoKeys);
    while (!address.empty() && found.size() < 64) {
        found.push_back(address);
        address = bridges.value(address, Json::object()).value("parent", "");
    }
    return found;
}

// Returns NVML's order. By default, NVML numbers the cards of NVIDIA's driver by PCI address.
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

// Raises for a value of a wrong type, with key and value. render.py checks every key, but a file may be damaged or
// changed by hand afterwards. The JSON library's own message would name neither key nor value.
static void expect(bool fits, const std::string &place, const Json &value, const char *wanted)
{
    if (fits) return;
    const std::string shown = value.dump(-1, ' ', false, Json::error_handler_t::replace);
    throw std::runtime_error(place + ": " + shown.substr(0, 80) + " is not " + wanted);
}

static void check_gpu(const Json &gpu, const std::string &place)
{
    expect(gpu.is_object(), place, gpu, "an object");
    for (const char *key : {"name", "uuid", "pci", "pci_id", "cc", "driver", "under"})
        if (gpu.contains(key)) expect(gpu[key].is_string(), place + "." + key, gpu[key], "text");
    for (const char *key : {"processes", "mig_instances"})
        if (gpu.contains(key)) expect(gpu[key].is_array(), place + "." + key, gpu[key], "a list");
}

static void check_order(const Json &order, size_t count)
{
    expect(order.is_array(), "nvml.order", order, "a list");
    for (const Json &one : order)
        expect(one.is_number_unsigned() && one.get<size_t>() < count, "nvml.order", one,
               "the number of a card");
}

static void check(const Json &keys)
{
    expect(keys.is_object(), "the scenario", keys, "an object");
    for (const char *section : {"nvml", "driver", "bridges"})
        if (keys.contains(section))
            expect(keys[section].is_object(), section, keys[section], "an object");
    for (const char *key : {"version", "module_version", "cuda"})
        if (keys.contains("driver") && keys["driver"].contains(key))
            expect(keys["driver"][key].is_string(), std::string("driver.") + key,
                   keys["driver"][key], "text");
    if (keys.contains("bridges"))
        for (const auto &[address, bridge] : keys["bridges"].items())
            expect(bridge.is_object() && bridge.value("parent", Json("")).is_string(),
                   "bridges." + address, bridge, "an object whose parent is an address");
    const Json &gpus = part_of(keys, "gpus", kNoList);
    expect(gpus.is_array(), "gpus", gpus, "a list");
    for (size_t i = 0; i < gpus.size(); ++i) check_gpu(gpus[i], "gpus[" + std::to_string(i) + "]");
    if (keys.contains("nvml") && keys["nvml"].contains("order"))
        check_order(keys["nvml"]["order"], gpus.size());
}

static std::shared_ptr<const Scenario> read(const char *path)
{
    auto made = std::make_shared<Scenario>();
    std::ifstream file(path);
    made->keys = Json::parse(std::string(std::istreambuf_iterator<char>(file), {}));
    check(made->keys);
    for (const Json &keys : part_of(made->keys, "gpus", kNoList)) {
        Gpu gpu;
        gpu.number = static_cast<int>(made->gpus.size());
        gpu.keys = keys;
        gpu.bridges = bridges_above(made->keys, keys.value("under", ""));
        if (gpu.number < kMaxGpus) made->gpus.push_back(std::move(gpu));
    }
    made->order = order_of(*made);
    return made;
}

Return tell(const char *call, const std::exception &error)
{
    const char *path = getenv("YOKE_FAKE_SCENARIO");
    fprintf(stderr, "fake NVML: %s: %s: %s\n", path ? path : "no scenario", call, error.what());
    return kUnknown;
}

// Tells whether the last look at the file is still valid. In a burst of calls, only the first call looks, or a call
// each millisecond. NVML looks at no file, so the fake should be as fast. A change of the file between two calls
// takes longer than the pause in a burst.
static bool is_recent()
{
    using Clock = std::chrono::steady_clock;
    constexpr auto kBurst = std::chrono::microseconds(10);
    constexpr auto kLook = std::chrono::milliseconds(1);
    static Clock::time_point called{}, looked{};
    const Clock::time_point now = Clock::now();
    const bool recent = now - called < kBurst && now - looked < kLook;
    if (!recent) looked = now;
    called = now;
    return recent;
}

// Returns the scenario. If the file cannot be read, or is only half written, the former scenario stays.
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
    if (!path || (is_recent() && *of == path) || stat(path, &state)) return *last;
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

// Reads the file when the library is loaded. NVML does this work in the kernel, so no call should pay for the file.
[[maybe_unused]] static const std::shared_ptr<const Scenario> s_first = scenario();

}  // namespace yoke::fake_nvml
