// chunks.cpp: seconds to map and unmap a chunk of 2 MiB, among many mapped in random order.
//
// Cases: "map COUNT". The first argument is the folder of a CUDA module (over the fake driver, by
// YOKE_CUDA_LIB_PATH); without it the chunks are the processor's. No byte of them is touched.
#include "core/backend/registry.h"
#include "core/device/device.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void must(yoke_status status, const char *call)
{
    if (status == YOKE_OK) return;
    fprintf(stderr, "chunks: %s: %s\n", call, yoke::take_backend_error(status, call).c_str());
    exit(1);
}

double map_and_unmap(const yoke_backend &table, void *device, size_t count)
{
    uint64_t unit = 0;
    must(table.vmm_granularity(device, &unit), "vmm_granularity");
    const uint64_t bytes = std::max(unit, uint64_t{2} << 20), all = bytes * count;
    void *range = nullptr;
    must(table.vmm_reserve(device, all, &range), "vmm_reserve");
    std::vector<uint64_t> chunks(count);
    for (uint64_t &chunk : chunks) must(table.vmm_create(device, bytes, &chunk), "vmm_create");
    std::vector<size_t> order(count);
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    const auto place = [&](size_t i) { return static_cast<char *>(range) + i * bytes; };
    const auto start = Clock::now();
    for (size_t i = 0; i < count; ++i)
        must(table.vmm_map(device, place(order[i]), bytes, chunks[i]), "vmm_map");
    std::reverse(order.begin(), order.end());
    for (const size_t each : order) must(table.vmm_unmap(device, place(each), bytes), "vmm_unmap");
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (const uint64_t chunk : chunks) must(table.vmm_destroy(device, chunk), "vmm_destroy");
    must(table.vmm_release(device, range, all), "vmm_release");
    return seconds / static_cast<double>(count);
}

}  // namespace

int main(int argc, char **argv)
{
    const yoke_backend *table = nullptr;
    void *device = nullptr;
    if (argc > 1) {
        const yoke::Backend opened = yoke::detail::open_module("cuda", argv[1]);
        if (!opened.table) return fprintf(stderr, "chunks: %s\n", opened.reason.c_str()), 1;
        table = opened.table;
        must(table->device_open(0, &device), "device_open");
    } else {
        const yoke::Device &cpu = *yoke::devices_of("cpu").front();
        table = cpu.backend;
        device = cpu.handle;
    }
    printf("chunks of %s\n", table->kind);
    fflush(stdout);
    char what[32];
    size_t count = 0;
    while (scanf("%31s %zu", what, &count) == 2) {
        printf("%.12g\n", map_and_unmap(*table, device, count));
        fflush(stdout);
    }
    return 0;
}
