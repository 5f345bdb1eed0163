// The first calls of a process, from several threads at once: the objects that the library makes at first use.
#include "scene.h"

#include <barrier>
#include <thread>

namespace hostile {

namespace {

constexpr int kCalls = 14;

void asks(int which)
{
    InventoryHeld inventory;
    ExplanationHeld explanation;
    ReportHeld report;
    const char *text = nullptr;
    int64_t bytes = 0;
    switch (which) {
        case 0:
            OK(yoke_inventory_take(inventory.out()));
            break;
        case 1:
            OK(yoke_explain("auto", explanation.out()));
            break;
        case 2:
            OK(yoke_doctor(YOKE_DOCTOR_REDACT, 0, report.out()));
            break;
        case 3:
            OK(yoke_config_get("YOKE_LOG", &text));
            break;
        case 4:
            TRUE(yoke_build_info() != nullptr);
            break;
        case 5:
            TRUE(yoke_get_num_threads() >= 1 && yoke_get_allow_tf32() == 0);
            break;
        default:
            OK(yoke_memory_allocated(nullptr, &bytes));
    }
}

void ignore(void *, int32_t, const char *) {}

void makes(int which)
{
    TensorHeld x, y;
    RegionHeld region;
    EventHeld event;
    GraphHeld graph;
    DeviceHeld device;
    int64_t id = 0;
    switch (which) {
        case 0:
            x = full(96, 96, 1);
            if (OK(yoke_matmul(x, x, y.out()))) TRUE(ONLY_VALUE(y) == 96);
            break;
        case 1:
            OK(yoke_autocast_create(1, YOKE_NONE, 1, region.out()));
            TRUE(yoke_autocast_swap(region) == nullptr);
            TRUE(yoke_autocast_swap(nullptr) == region);
            break;
        case 2:
            OK(yoke_event_create(1, event.out()));
            OK(yoke_event_record(event, nullptr));
            break;
        case 3:
            OK(yoke_graph_create(nullptr, graph.out()));
            OK(yoke_graph_begin(graph));
            break;
        case 4:
            OK(yoke_device_open("auto", device.out()));
            break;
        case 5:
            if (OK(yoke_log_add_callback(ignore, nullptr, nullptr, &id)))
                OK(yoke_log_remove_callback(id));
            break;
        default:
            OK(yoke_manual_seed(7));
    }
}

}  // namespace

void first_calls(uint64_t seed, int threads)
{
    std::barrier start(threads);
    std::vector<std::thread> all;
    for (int t = 0; t < threads; ++t)
        all.emplace_back([&start, seed, t] {
            Dice dice{std::mt19937_64(seed * 100 + static_cast<uint64_t>(t)), t};
            start.arrive_and_wait();
            for (int i = 0; i < 3; ++i) {
                const auto which = static_cast<int>(dice.below(kCalls));
                which % 2 ? asks(which / 2) : makes(which / 2);
            }
        });
    for (std::thread &thread : all) thread.join();
    TRUE(yoke_live_tensor_count() == 0);
}

}  // namespace hostile
