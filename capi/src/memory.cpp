#include "yoke/memory.h"

#include "capi/src/guard.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/memory.h"
#include "core/memory/oom.h"
#include "core/memory/relief.h"
#include "core/memory/statistics.h"
#include "core/state/tree.h"
#include "core/tensor/tensor.h"

using namespace yoke;
using namespace yoke::capi;

namespace {
yoke_status statistic(const char *call, yoke_device *device, int64_t *bytes,
                      int64_t MemoryStats::*member) noexcept
{
    return guard(call, [&] {
        need(bytes, call, "bytes") = memory_stats(device_or_current(device)).*member;
    });
}

yoke_status add(const char *call, ReliefKind kind, ReliefFn fn, void *user, yoke_drop_fn drop,
                int64_t *id) noexcept
{
    return guard(call, [&] {
        int64_t &number = need(id, call, "id");
        if (!fn)
            fail(YOKE_E_VALUE, "%s: argument 'fn' is NULL; a callback is needed", short_name(call));
        number = add_relief(kind, fn, user, drop);
    });
}

yoke_status remove(const char *call, ReliefKind kind, int64_t id, const char *giver) noexcept
{
    return guard(call, [&] {
        if (!remove_relief(kind, id))
            fail(
                YOKE_E_VALUE,
                "%s: argument 'id' is %lld; it must be a number that %s returned and that was not removed",
                short_name(call), static_cast<long long>(id), giver);
    });
}

StateDict details_of(const OomRecord &record)
{
    StateDict details;
    details.put(std::string("device"), State::make(std::string(record.device)));
    const std::pair<const char *, int64_t> numbers[] = {{"requested", record.requested},
                                                        {"allocated", record.allocated},
                                                        {"rounding", record.rounding},
                                                        {"reserved", record.reserved},
                                                        {"free_in_cache", record.free_in_cache},
                                                        {"largest_free", record.largest_free},
                                                        {"stranded", record.stranded},
                                                        {"waiting", record.waiting},
                                                        {"graphs", record.graphs},
                                                        {"foreign", record.foreign},
                                                        {"others", record.others},
                                                        {"free", record.free},
                                                        {"total", record.total}};
    for (const auto &[key, bytes] : numbers) details.put(std::string(key), State::make(bytes));
    details.put(std::string("limit"), State::make(std::string(record.limit)));
    return details;
}
}  // namespace

yoke_status yoke_memory_allocated(yoke_device *device, int64_t *bytes)
{
    return statistic("yoke_memory_allocated", device, bytes, &MemoryStats::allocated);
}

yoke_status yoke_max_memory_allocated(yoke_device *device, int64_t *bytes)
{
    return statistic("yoke_max_memory_allocated", device, bytes, &MemoryStats::max_allocated);
}

yoke_status yoke_memory_reserved(yoke_device *device, int64_t *bytes)
{
    return statistic("yoke_memory_reserved", device, bytes, &MemoryStats::reserved);
}

yoke_status yoke_max_memory_reserved(yoke_device *device, int64_t *bytes)
{
    return statistic("yoke_max_memory_reserved", device, bytes, &MemoryStats::max_reserved);
}

yoke_status yoke_reset_peak_memory_stats(yoke_device *device)
{
    return guard("yoke_reset_peak_memory_stats",
                 [&] { reset_peak_memory_stats(device_or_current(device)); });
}

int64_t yoke_live_tensor_count(void)
{
    return live_tensor_count();
}

yoke_status yoke_empty_cache(yoke_device *device)
{
    constexpr const char *call = "yoke_empty_cache";
    return guard(call, [&] {
        check_not_capturing(short_name(call));
        empty_cache(&device_or_current(device));
    });
}

yoke_status yoke_set_caching(int32_t enabled)
{
    constexpr const char *call = "yoke_set_caching";
    return guard(call, [&] {
        check_not_capturing(short_name(call));
        set_caching(enabled != 0);
    });
}

int32_t yoke_is_caching(void)
{
    return guard_value("yoke_is_caching", -1, [] { return is_caching() ? 1 : 0; });
}

yoke_status yoke_memory_stats(yoke_device *device, yoke_state **out)
{
    constexpr const char *call = "yoke_memory_stats";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        StateDict stats;
        for (const MemoryFigure &each : memory_figures(device_or_current(device)))
            stats.put(each.key, each.is_part ? State::make(each.part) : State::make(each.number));
        place = hand_out<yoke_state>(State::make(std::move(stats)));
    });
}

yoke_status yoke_reset_accumulated_memory_stats(yoke_device *device)
{
    return guard("yoke_reset_accumulated_memory_stats",
                 [&] { reset_accumulated_memory_stats(device_or_current(device)); });
}

yoke_status yoke_set_alloc_conf(const char *settings)
{
    constexpr const char *call = "yoke_set_alloc_conf";
    return guard(call,
                 [&] { set_alloc_conf(short_name(call), &need(settings, call, "settings")); });
}

yoke_status yoke_get_alloc_conf(const char **settings)
{
    constexpr const char *call = "yoke_get_alloc_conf";
    return guard(call, [&] {
        thread_local std::string kept;
        const char *&place = need_out(settings, call, "settings");
        kept = describe(alloc_conf());
        place = kept.c_str();
    });
}

yoke_status yoke_on_out_of_memory(yoke_relief_fn fn, void *user, yoke_drop_fn drop, int64_t *id)
{
    return add("yoke_on_out_of_memory", ReliefKind::kCallback, fn, user, drop, id);
}

yoke_status yoke_remove_on_out_of_memory(int64_t id)
{
    return remove("yoke_remove_on_out_of_memory", ReliefKind::kCallback, id,
                  "yoke_on_out_of_memory");
}

yoke_state *yoke_oom_details(void)
{
    return guard_value("yoke_oom_details", static_cast<yoke_state *>(nullptr),
                       []() -> yoke_state * {
                           const OomRecord *record = last_oom();
                           if (!record) return nullptr;
                           return hand_out<yoke_state>(State::make(details_of(*record)));
                       });
}

yoke_status yoke_add_garbage_collector(yoke_relief_fn fn, void *user, yoke_drop_fn drop,
                                       int64_t *id)
{
    return add("yoke_add_garbage_collector", ReliefKind::kCollector, fn, user, drop, id);
}

yoke_status yoke_remove_garbage_collector(int64_t id)
{
    return remove("yoke_remove_garbage_collector", ReliefKind::kCollector, id,
                  "yoke_add_garbage_collector");
}

yoke_status yoke_alloc(int64_t bytes, yoke_device *device, void *stream, void **out)
{
    constexpr const char *call = "yoke_alloc";
    return guard(call, [&] {
        void *&place = need_out(out, call);
        if (bytes < 0)
            fail(YOKE_E_VALUE, "%s: argument 'bytes' is %lld; it cannot be negative",
                 short_name(call), static_cast<long long>(bytes));
        place = raw_alloc(device_or_current(device), static_cast<uint64_t>(bytes), stream);
    });
}

yoke_status yoke_free(void *pointer)
{
    return guard("yoke_free", [&] { raw_free(pointer); });
}
