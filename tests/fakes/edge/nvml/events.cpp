// Events from the driver, and values requested by number.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <set>
#include <thread>

#include "tests/fakes/edge/nvml/simple.h"

using namespace yoke::fake_nvml;

namespace {

constexpr ulonglong kXid = 8, kSupported = 0x1 | 0x2 | 0x4 | kXid | 0x10 | 0x80 | 0x100;

// Cards whose events a caller waits for, and the number of events already reported.
struct EventSet {
    std::set<int> gpus;
    size_t told = 0;
};

struct EventSets {
    std::mutex mutex;
    std::set<EventSet *> live;
};

EventSets &sets()
{
    static auto *const all = new EventSets;
    return *all;
}

// Gets the next event of a set; each event of a scenario is reported once.
bool next_event(const Scenario &all, EventSet &set, EventData &out)
{
    const Json events = all.keys.value("events", Json::array());
    while (set.told < events.size()) {
        const Json &event = events[set.told++];
        const int gpu = event.value("gpu", -1);
        if (!set.gpus.count(gpu)) continue;
        out = {handle_of(gpu), kXid, event.value("xid", 0ull), kNoInstance, kNoInstance};
        return true;
    }
    return false;
}

template <class Layout>
int wait(const char *call, EventSet *set, Layout *out, uint milliseconds)
{
    return on_system(call, {set, out}, [&](const Scenario &all) {
        EventData event{};
        {
            const std::lock_guard lock(sets().mutex);
            if (!sets().live.count(set)) return kInvalidArgument;
            if (next_event(all, *set, event)) {
                memcpy(out, &event, sizeof *out);
                return kSuccess;
            }
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
        return kTimeout;
    });
}

// Fields by number: {field, key, type (1 number, 3 large), factor}.
constexpr struct {
    uint field;
    const char *key;
    int type;
    double factor;
} kFields[] = {{1, "ecc", 1, 1},
               {3, "ecc_corrected", 3, 1},
               {4, "ecc_uncorrected", 3, 1},
               {82, "memory_temperature", 1, 1},
               {83, "energy", 3, 1000},
               {91, "nvlinks", 1, 1},
               {142, "remap_corrected", 1, 1},
               {143, "remap_uncorrected", 1, 1},
               {144, "remap_pending", 1, 1},
               {145, "remap_failed", 1, 1},
               {185, "power", 1, 1000},
               {186, "power", 1, 1000},
               {187, "power_limit_min", 1, 1000},
               {188, "power_limit_max", 1, 1000},
               {190, "power_limit", 1, 1000}};

void answer(const Gpu &gpu, FieldValue &value)
{
    value.result = kNotSupported;
    value.time = 1756316731000000;
    value.latency = 0;
    for (const auto &known : kFields) {
        const auto found = gpu.number_of(known.key);
        if (known.field != value.field || !found) continue;
        value.value.large = static_cast<ulonglong>(*found * known.factor + 0.5);
        value.type = known.type;
        value.result = kSuccess;
    }
}

}  // namespace

EXPORT int nvmlEventSetCreate(EventSet **set)
{
    return on_system(__func__, {set}, [&](const Scenario &) {
        const std::lock_guard lock(sets().mutex);
        *set = *sets().live.insert(new EventSet).first;
        return kSuccess;
    });
}

EXPORT int nvmlEventSetFree(EventSet *set)
{
    return on_system(__func__, {set}, [&](const Scenario &) {
        const std::lock_guard lock(sets().mutex);
        if (!sets().live.erase(set)) return kInvalidArgument;
        delete set;
        return kSuccess;
    });
}

EXPORT int nvmlDeviceRegisterEvents(Handle *device, ulonglong types, EventSet *set)
{
    return on_gpu(__func__, device, {set}, [&](const Scenario &, const Gpu &gpu) {
        const std::lock_guard lock(sets().mutex);
        if (!sets().live.count(set)) return kInvalidArgument;
        if (types & ~kSupported) return kNotSupported;
        if (types & kXid) set->gpus.insert(gpu.number);
        return kSuccess;
    });
}

EXPORT int nvmlDeviceGetSupportedEventTypes(Handle *device, ulonglong *types)
{
    return on_gpu(__func__, device, {types}, [&](const Scenario &, const Gpu &) {
        *types = kSupported;
        return kSuccess;
    });
}

EXPORT int nvmlEventSetWait_v2(EventSet *set, EventData *out, uint milliseconds)
{
    return wait(__func__, set, out, milliseconds);
}

EXPORT int nvmlEventSetWait(EventSet *set, EventDataV1 *out, uint milliseconds)
{
    return wait(__func__, set, out, milliseconds);
}

// The call succeeds, and each value has a code of its own.
EXPORT int nvmlDeviceGetFieldValues(Handle *device, int count, FieldValue *values)
{
    return on_gpu(__func__, device, {values}, [&](const Scenario &, const Gpu &gpu) {
        if (count <= 0) return kInvalidArgument;
        for (int i = 0; i < count; ++i) answer(gpu, values[i]);
        return kSuccess;
    });
}

// Reports the processors near a card, a bit each.
EXPORT int nvmlDeviceGetCpuAffinity(Handle *device, uint words, unsigned long *set)
{
    return on_gpu(__func__, device, {set}, [&](const Scenario &all, const Gpu &gpu) {
        const std::string node = std::to_string(gpu.keys.value("numa_node", -1));
        const std::string list = all.keys.value("nodes", Json::object()).value(node, "");
        if (list.empty()) return kNotSupported;
        std::fill(set, set + words, 0ul);
        size_t at = 0;
        while (at < list.size()) {
            uint first = 0, last = 0;
            if (sscanf(list.c_str() + at, "%u-%u", &first, &last) < 2) last = first;
            for (uint cpu = first; cpu <= last && cpu / 64 < words; ++cpu)
                set[cpu / 64] |= 1ul << cpu % 64;
            at = std::min(list.find(',', at), list.size() - 1) + 1;
        }
        return kSuccess;
    });
}
