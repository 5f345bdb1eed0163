// Measuring: each figure is the median of runs that take a set time together, after a warm-up. A run ends when the device
// has ended its work, so that nothing is counted that was only asked for.
#include "bindings/cli/src/bench.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <string_view>

namespace yoke::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kCopyBytes = int64_t{256} << 20;  // beyond every cache
constexpr int64_t kHostBytes = int64_t{64} << 20;
constexpr int kLaunches = 1000;

struct Timing {
    double median = 0, spread = 0;  // seconds; share
};

double seconds_of(yoke_device *device, const std::function<void()> &work)
{
    const auto start = Clock::now();
    work();
    check(yoke_device_synchronize(device));
    return std::chrono::duration<double>(Clock::now() - start).count();
}

Timing time_of(yoke_device *device, double seconds, const std::function<void()> &work)
{
    std::vector<double> runs;
    const double first = (seconds_of(device, work), seconds_of(device, work));
    const int count = std::clamp(static_cast<int>(seconds / std::max(first, 1e-6)), 5, 200);
    for (int i = 0; i < count; ++i) runs.push_back(seconds_of(device, work));
    std::sort(runs.begin(), runs.end());
    const double median = runs[runs.size() / 2];
    return {median, (runs[runs.size() * 3 / 4] - runs[runs.size() / 4]) / median};
}

bool is_host(yoke_device *device)
{
    return std::string_view(yoke_device_kind(device)) == "cpu";
}

Tensor filled(yoke_device *device, std::vector<int64_t> shape, yoke_dtype dtype)
{
    return make<Tensor>(yoke_ones, shape.data(), static_cast<int64_t>(shape.size()), dtype, device);
}

Figure matmul(yoke_device *device, yoke_dtype dtype, double seconds)
{
    const int64_t n = is_host(device) ? 1024 : 8192;
    const Tensor x = filled(device, {n, n}, dtype), y = filled(device, {n, n}, dtype);
    const Timing t = time_of(device, seconds, [&] { make<Tensor>(yoke_matmul, x.get(), y.get()); });
    const double operations =
        2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n);
    return {std::string("matmul ") + yoke_dtype_name(dtype), "op/s", operations / t.median,
            t.spread};
}

Figure copy(yoke_device *device, double seconds)
{
    const Tensor x = filled(device, {kCopyBytes}, YOKE_U8),
                 y = filled(device, {kCopyBytes}, YOKE_U8);
    const Timing t = time_of(device, seconds, [&] { check(yoke_copy_(y.get(), x.get())); });
    return {"copy (read and write)", "B/s", 2.0 * static_cast<double>(kCopyBytes) / t.median,
            t.spread};
}

Figure launch(yoke_device *device, double seconds)
{
    const Tensor x = filled(device, {8}, YOKE_F32);
    const Timing t = time_of(device, seconds, [&] {
        for (int i = 0; i < kLaunches; ++i) make<Tensor>(yoke_add, x.get(), x.get());
    });
    return {"launch (add of 8 elements)", "s", t.median / kLaunches, t.spread};
}

// Both ways, from memory that the driver may read itself and from any other.
void host_copies(yoke_device *device, double seconds, std::vector<Figure> &figures)
{
    const Device host = make<Device>(yoke_device_open, "cpu");
    const Tensor far = filled(device, {kHostBytes}, YOKE_U8),
                 pageable = filled(host.get(), {kHostBytes}, YOKE_U8);
    const Tensor pinned = make<Tensor>(yoke_tensor_pin_memory, pageable.get());
    const auto add = [&](const char *name, yoke_tensor *to, yoke_tensor *from) {
        const Timing t = time_of(device, seconds, [&] { check(yoke_copy_(to, from)); });
        figures.push_back({name, "B/s", static_cast<double>(kHostBytes) / t.median, t.spread});
    };
    add("host to device, pinned", far.get(), pinned.get());
    add("device to host, pinned", pinned.get(), far.get());
    add("host to device, pageable", far.get(), pageable.get());
    add("device to host, pageable", pageable.get(), far.get());
}

void peer_matrix(Bench &bench, yoke_device *device, double seconds)
{
    int32_t count = 0;
    check(yoke_device_count(yoke_device_kind(device), &count));
    if (count < 2) return;
    std::vector<Device> devices;
    std::vector<Tensor> blocks;
    for (int32_t i = 0; i < count; ++i) {
        devices.push_back(make<Device>(yoke_device_get, yoke_device_kind(device), i));
        blocks.push_back(filled(devices.back().get(), {kHostBytes}, YOKE_U8));
        bench.peers.emplace_back(yoke_device_spec(devices.back().get()));
    }
    for (size_t from = 0; from < blocks.size(); ++from)
        for (size_t to = 0; to < blocks.size(); ++to) {
            const auto work = [&] {
                make<Tensor>(yoke_tensor_to, blocks[from].get(), devices[to].get(), YOKE_NONE);
            };
            bench.peer_rates.push_back(from == to
                                           ? 0
                                           : static_cast<double>(kHostBytes) /
                                                 time_of(devices[to].get(), seconds, work).median);
        }
}

std::vector<Figure> figures_of(yoke_device *device, double seconds)
{
    std::vector<Figure> figures;
    for (const yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16})
        figures.push_back(matmul(device, dtype, seconds));
    figures.push_back(copy(device, seconds));
    figures.push_back(launch(device, seconds));
    return figures;
}

// Bytes a second that a PCI Express link carries in one direction, after its line code.
double link_rate(int32_t generation, int32_t width)
{
    static constexpr double lanes[] = {0, 0.25e9, 0.5e9, 0.985e9, 1.969e9, 3.938e9, 7.563e9};
    return generation < 1 || generation > 6 ? 0 : lanes[generation] * width;
}

void compare_with_catalog(Bench &bench)
{
    yoke_device *handle = nullptr;
    check(yoke_device_open(bench.device.c_str(), &handle));
    const Device device(handle);
    int64_t free_bytes = 0, total = 0;
    check(yoke_device_memory(handle, &free_bytes, &total));
    const int32_t index = yoke_catalog_find(bench.name.c_str(), total);
    if (index < 0) return;
    const auto entry = get<yoke_catalog_card>(yoke_catalog_get, index);
    bench.model = entry.name;
    for (Figure &figure : bench.figures) {
        const std::string_view name = figure.name;
        figure.nominal = name == "matmul float64"      ? entry.f64_rate
                         : name == "matmul float32"    ? entry.f32_rate
                         : name == "matmul float16"    ? entry.f16_rate
                         : name == "matmul bfloat16"   ? entry.bf16_rate
                         : name.substr(0, 4) == "copy" ? entry.memory_bandwidth
                         : name.find("host") != name.npos
                             ? link_rate(entry.link_generation, entry.link_width)
                             : 0;
    }
}

}  // namespace

Bench measure(yoke_device *device, double seconds)
{
    Bench bench{yoke_device_spec(device),
                yoke_device_name(device),
                "",
                figures_of(device, seconds),
                {},
                {}};
    if (is_host(device)) return bench;
    const Device host = make<Device>(yoke_device_open, "cpu");
    const std::vector<Figure> beside = figures_of(host.get(), seconds);
    for (size_t i = 0; i < beside.size(); ++i) bench.figures[i].cpu = beside[i].value;
    host_copies(device, seconds, bench.figures);
    peer_matrix(bench, device, seconds);
    compare_with_catalog(bench);
    return bench;
}

}  // namespace yoke::cli
