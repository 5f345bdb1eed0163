// Measuring: each figure is the median of runs with a set total time, after a warm-up. A run ends when the device has
// finished its work, so no unfinished request is counted.
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

// Measures both directions, with pinned and with plain host memory.
void host_copies(yoke_device *device, yoke_device *host, double seconds,
                 std::vector<Figure> &figures)
{
    const Tensor far = filled(device, {kHostBytes}, YOKE_U8);
    const Tensor near = filled(host, {kHostBytes}, YOKE_U8);
    const Tensor pinned = make<Tensor>(yoke_tensor_pin_memory, near.get());
    std::vector<char> pageable(static_cast<size_t>(kHostBytes), 1);
    const auto add = [&](const char *name, const std::function<void()> &copy) {
        const Timing t = time_of(device, seconds, copy);
        figures.push_back({name, "B/s", static_cast<double>(kHostBytes) / t.median, t.spread});
    };
    add("host to device, pinned",
        [&] { make<Tensor>(yoke_tensor_to_v2, pinned.get(), device, YOKE_NONE, 1); });
    add("device to host, pinned",
        [&] { make<Tensor>(yoke_tensor_to_v2, far.get(), host, YOKE_NONE, 1); });
    add("host to device, pageable",
        [&] { check(yoke_tensor_copy_from_host(far.get(), pageable.data(), kHostBytes)); });
    add("device to host, pageable",
        [&] { check(yoke_tensor_copy_to_host(far.get(), pageable.data(), kHostBytes)); });
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

// Adds the figure of a matrix product. A dtype that the device does not multiply gives no figure.
void add_matmul(yoke_device *device, yoke_dtype dtype, double seconds, std::vector<Figure> &figures)
{
    try {
        figures.push_back(matmul(device, dtype, seconds));
    } catch (const Failure &failure) {
        if (failure.status != YOKE_E_UNSUPPORTED) throw;
    }
}

// Adds the figure of a matrix product in TF32, which the program has to allow. The CPU has no such figure.
void add_tf32(yoke_device *device, double seconds, std::vector<Figure> &figures)
{
    if (is_host(device)) return;
    const int32_t before = yoke_get_allow_tf32();
    check(yoke_set_allow_tf32(1));
    Figure figure = matmul(device, YOKE_F32, seconds);
    check(yoke_set_allow_tf32(before));
    figure.name = "matmul float32 in TF32";
    figures.push_back(figure);
}

std::vector<Figure> figures_of(yoke_device *device, double seconds)
{
    std::vector<Figure> figures;
    for (const yoke_dtype dtype : {YOKE_F64, YOKE_F32, YOKE_F16, YOKE_BF16})
        add_matmul(device, dtype, seconds, figures);
    figures.push_back(copy(device, seconds));
    figures.push_back(launch(device, seconds));
    return figures;
}

// Returns bytes per second of a PCI Express link, per direction, after its line code.
double link_rate(int32_t generation, int32_t width)
{
    switch (generation) {
#define YOKE_PCIE(number, rate) \
    case number:                \
        return rate * width;
#include "pcie.inc"
#undef YOKE_PCIE
        default:
            return 0;
    }
}

double nominal_of(const yoke_catalog_card &entry, std::string_view name)
{
    if (name == "matmul float64") return entry.f64_rate;
    if (name == "matmul float32") return entry.f32_rate;
    if (name == "matmul float32 in TF32") return entry.tf32_rate;
    if (name == "matmul float16") return entry.f16_rate;
    if (name == "matmul bfloat16") return entry.bf16_rate;
    if (name.substr(0, 4) == "copy") return entry.memory_bandwidth;
    if (name.find("host") != name.npos) return link_rate(entry.link_generation, entry.link_width);
    return 0;
}

void compare_with_catalog(Bench &bench, yoke_device *device)
{
    int64_t free_bytes = 0, total = 0;
    check(yoke_device_memory(device, &free_bytes, &total));
    const int32_t index = yoke_catalog_find(bench.name.c_str(), total);
    if (index < 0) return;
    const auto entry = get<yoke_catalog_card>(yoke_catalog_get, index);
    bench.model = entry.name;
    for (Figure &figure : bench.figures) figure.nominal = nominal_of(entry, figure.name);
    // NVLink's figure counts both directions; between cards without it the bus is the way.
    bench.peer_nominal = entry.nvlink_bandwidth > 0
                             ? entry.nvlink_bandwidth / 2
                             : link_rate(entry.link_generation, entry.link_width);
}

}  // namespace

Bench measure(yoke_device *device, double seconds)
{
    Bench bench;
    bench.device = yoke_device_spec(device);
    bench.name = yoke_device_name(device);
    check(yoke_set_device(device));  // its driver pins memory
    bench.figures = figures_of(device, seconds);
    if (is_host(device)) return bench;
    add_tf32(device, seconds, bench.figures);
    if (yoke_is_available("cpu")) {
        const Device host = make<Device>(yoke_device_open, "cpu");
        for (const Figure &beside : figures_of(host.get(), seconds))
            for (Figure &figure : bench.figures)
                if (figure.name == beside.name) figure.cpu = beside.value;
        host_copies(device, host.get(), seconds, bench.figures);
    }
    peer_matrix(bench, device, seconds);
    compare_with_catalog(bench, device);
    return bench;
}

}  // namespace yoke::cli
