#include "core/memory/oom.h"

#include "core/base/text.h"
#include "core/device/free_memory.h"
#include "core/memory/alloc_conf.h"
#include "core/memory/statistics.h"

#include <algorithm>

namespace yoke {

namespace {

std::string human(int64_t bytes)
{
    return bytes_text(static_cast<double>(std::max<int64_t>(bytes, 0)));
}

// Returns the numbers for the message, gathered in a single walk, since host memory may be short.
OomRecord look(DeviceMemory &memory, uint64_t bytes, FreeMemory &free_memory)
{
    Device &device = memory.device();
    const MemoryUse use = memory_use(device);
    OomRecord record = {};
    put(record.device, device.name);
    record.requested = static_cast<int64_t>(std::min<uint64_t>(bytes, INT64_MAX));
    record.allocated = use.allocated;
    record.rounding = use.allocated - use.requested;
    record.reserved = use.reserved;
    record.free_in_cache = use.free + use.held;
    record.largest_free = use.largest;
    record.stranded = use.stranded;
    record.waiting = use.waiting;
    record.graphs = use.graphs;
    record.foreign = use.foreign;
    record.free = record.total = -1;
    if (free_memory_on(device, &free_memory) == YOKE_OK) {
        record.free = static_cast<int64_t>(free_memory.free);
        record.total = static_cast<int64_t>(free_memory.total);
        put(record.limit, free_memory.limit);
        if (!device.host)
            record.others = std::max<int64_t>(record.total - record.free - record.reserved, 0);
    }
    return record;
}

// Returns " (1.00 GiB of it rounding, 2.00 GiB of captured graphs)"; "" if all parts are 0.
std::string parts(std::initializer_list<std::pair<int64_t, const char *>> items)
{
    std::string text;
    for (const auto &[bytes, what] : items)
        if (bytes > 0) text += (text.empty() ? " (" : ", ") + human(bytes) + " " + what;
    return text.empty() ? text : text + ")";
}

std::string describe(const OomRecord &record, const FreeMemory &free_memory)
{
    std::string text =
        human(record.allocated) + " allocated" +
        parts({{record.rounding, "of it rounding"},
               {record.graphs, "in memory of captured graphs"},
               {record.foreign, "held by engines of groups"}}) +
        " and " + human(record.reserved) + " reserved there" +
        parts({{record.free_in_cache, "of it free"},
               {record.waiting, "in use by other streams"},
               {record.free_in_cache ? record.largest_free : 0, "in the largest piece"}});
    if (record.total < 0) return text + ", the free memory is not known";
    text += ", " + human(record.free) + " of " + human(record.total) + " are free";
    if (!free_memory.limit.empty()) text += " within " + free_memory.limit;
    if (record.others > 0) text += ", other processes and the driver use " + human(record.others);
    return text;
}

// Returns the remedies for this shortage alone, the nearest first.
std::string remedies(const OomRecord &record, const FreeMemory &free_memory)
{
    std::string text;
    const bool is_met = record.free < record.requested;
    if (!free_memory.limit.empty() && is_met)
        text += free_memory.kills
                    ? "raise that limit (docker run --memory=…, MemoryMax= of systemd), "
                    : "raise that limit (ulimit -v unlimited, or -d), ";
    if (record.others > record.requested)
        text += "check which other processes use the device (nvidia-smi), ";
    if (record.graphs > record.requested) text += "release captured graphs, ";
    if (record.free_in_cache >= record.requested && !alloc_conf().expandable_segments)
        text += "set expandable_segments:True, ";
    const bool would_help =
        record.allocated > 0 && (record.total < 0 || record.requested <= record.total);
    if (!would_help) return text + "request less memory";
    return text +
           "drop tensors that are no longer needed, use a smaller batch, or let autocast keep activations in half precision";
}

}  // namespace

[[noreturn]] __attribute__((cold)) void fail_oom(DeviceMemory &memory, uint64_t bytes,
                                                 const std::string &reason)
{
    const Device &device = memory.device();
    memory.counters().count(MemoryEvent::kOutOfMemory);
    FreeMemory free_memory;
    OomRecord record = look(memory, bytes, free_memory);
    const Error error(
        YOKE_E_OOM,
        format("no memory on %s: %s (%llu bytes) were requested; this process has %s; %s (%s)",
               device.name.c_str(), bytes_text(static_cast<double>(bytes)).c_str(),
               static_cast<unsigned long long>(bytes), describe(record, free_memory).c_str(),
               remedies(record, free_memory).c_str(), reason.c_str()),
        0, device.name);
    record.is_new = true;
    thread_state().oom = record;
    throw error;
}

const OomRecord *last_oom() noexcept
{
    const ThreadState *state = known_thread_state();
    return state && state->oom.is_of_last ? &state->oom : nullptr;
}

}  // namespace yoke
