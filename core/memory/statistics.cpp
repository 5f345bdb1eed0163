#include "core/memory/statistics.h"

#include "core/memory/device_memory.h"
#include "core/memory/survey.h"

#include <algorithm>
#include <array>

namespace yoke {

namespace {

constexpr const char *kPools[] = {"small_pool", "large_pool", "all"};  // by Pool

class Figures {
public:
    void add(const std::string &key, int64_t number) { all_.push_back({key, number, 0, false}); }
    void add_part(const std::string &key, double part) { all_.push_back({key, 0, part, true}); }

    // Adds PyTorch's figures of a quantity: four numbers for each pool.
    void add_stats(const char *key, const PoolStats &stats, int64_t Amounts::*which)
    {
        for (int each : {kAllPools, kLargePool, kSmallPool}) {
            const std::string start = std::string(key) + "." + kPools[each] + ".";
            add(start + "current", stats.now[each].*which);
            add(start + "peak", stats.peak[each].*which);
            add(start + "allocated", stats.came[each].*which);
            add(start + "freed", stats.gone[each].*which);
        }
    }

    std::vector<MemoryFigure> take() { return std::move(all_); }

private:
    std::vector<MemoryFigure> all_;
};

struct EventKey {
    const char *key;
    MemoryEvent event;
};
constexpr EventKey kEvents[] = {
    {"num_alloc_retries", MemoryEvent::kRetry},
    {"num_ooms", MemoryEvent::kOutOfMemory},
    {"num_sync_all_streams", MemoryEvent::kSynchronize},
    {"num_device_alloc", MemoryEvent::kDeviceAlloc},
    {"num_device_free", MemoryEvent::kDeviceFree},
    {"cross_stream_steals", MemoryEvent::kSteal},
    {"rung.used_elsewhere", MemoryEvent::kUsed},
    {"rung.own_magazine", MemoryEvent::kMagazine},
    {"rung.known_order", MemoryEvent::kKnown},
    {"rung.growth", MemoryEvent::kGrow},
    {"rung.inserted_wait", MemoryEvent::kWait},
    {"rung.all_magazines", MemoryEvent::kAllMagazines},
    {"rung.device_wait", MemoryEvent::kSettle},
    {"rung.give_back", MemoryEvent::kGiveBack},
    {"rung.garbage_collector", MemoryEvent::kCollector},
    {"rung.on_out_of_memory", MemoryEvent::kCallback},
};

// All counters and a walk.
struct Look {
    explicit Look(Device &device)
        : counters(memory_of(device).counters()),
          survey(walk(memory_of(device).growth())),
          blocks(counters.blocks()),
          active(counters.active()),
          reserved(counters.reserved())
    {
    }
    static Survey walk(Growth &growth)
    {
        const Growth::Hold hold(growth);
        return survey_of(growth);
    }

    MemoryCounters &counters;
    Survey survey;
    const PoolStats blocks, active, reserved;
};

}  // namespace

std::vector<MemoryFigure> memory_figures(Device &device)
{
    Look look(device);
    auto &[counters, survey, blocks, active, reserved] = look;
    for (int each : {kSmallPool, kLargePool, kAllPools}) {
        Amounts &split = survey.split[each];
        split.bytes = std::max<int64_t>(
            reserved.now[each].bytes - active.now[each].bytes - survey.releasable[each], 0);
    }
    const PoolStats split = counters.look_at_split(survey.split);

    Figures figures;
    figures.add_stats("allocation", blocks, &Amounts::count);
    figures.add_stats("segment", reserved, &Amounts::count);
    figures.add_stats("active", active, &Amounts::count);
    figures.add_stats("inactive_split", split, &Amounts::count);
    figures.add_stats("allocated_bytes", blocks, &Amounts::bytes);
    figures.add_stats("reserved_bytes", reserved, &Amounts::bytes);
    figures.add_stats("active_bytes", active, &Amounts::bytes);
    figures.add_stats("inactive_split_bytes", split, &Amounts::bytes);
    figures.add_stats("requested_bytes", blocks, &Amounts::requested);
    for (const EventKey &each : kEvents) figures.add(each.key, counters.events(each.event));
    // Settings of PyTorch without an equal in Yoke, so their counters stay 0.
    figures.add("num_oom_rejections", 0);
    figures.add("max_split_size", -1);
    for (const char *key : {"oversize_allocations", "oversize_segments"})
        for (const char *field : {"current", "peak", "allocated", "freed"})
            figures.add(std::string(key) + "." + field, 0);
    figures.add("reserved_bytes_by_private_pools", survey.graph_bytes);
    const int64_t most = reserved.peak[kAllPools].bytes;
    figures.add_part("fragmentation", most == 0
                                          ? 0
                                          : 1 - static_cast<double>(active.peak[kAllPools].bytes) /
                                                    static_cast<double>(most));
    figures.add("stranded_bytes", survey.stranded());
    figures.add("largest_free_bytes", survey.largest);
    figures.add("foreign_bytes", counters.foreign());
    return figures.take();
}

MemoryUse memory_use(Device &device)
{
    const Look look(device);
    const auto &[counters, survey, blocks, active, reserved] = look;
    MemoryUse use;
    use.allocated = blocks.now[kAllPools].bytes;
    use.requested = blocks.now[kAllPools].requested;
    use.reserved = reserved.now[kAllPools].bytes;
    for (const int64_t bytes : survey.free_by_lane) use.free += bytes;
    use.largest = survey.largest;
    use.stranded = survey.stranded();
    use.waiting = active.now[kAllPools].bytes - use.allocated;
    use.graphs = survey.graph_bytes;
    use.foreign = counters.foreign();
    use.held = std::max<int64_t>(use.reserved - active.now[kAllPools].bytes - use.free, 0);
    return use;
}

void reset_accumulated_memory_stats(Device &device)
{
    memory_of(device).counters().reset_totals();
}

}  // namespace yoke
