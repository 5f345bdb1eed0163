// Checks of a backend's table before any entry is called.
#include "core/backend/comm.h"
#include "core/backend/ops.inc"
#include "core/backend/registry.h"
#include "core/base/error.h"

#include <cinttypes>
#include <cstring>

namespace yoke::detail {

namespace {

// An entry of a table, as a place where a function pointer stands.
struct Slot {
    const char *name;
    size_t offset;
};
#define SLOT(entry)                           \
    {                                         \
#entry, offsetof(yoke_backend, entry) \
    }
#define COMM_SLOT(entry)                           \
    {                                              \
#entry, offsetof(yoke_backend_comm, entry) \
    }

constexpr Slot kRequired[] = {
    SLOT(device_count), SLOT(why_unavailable),
    SLOT(device_open),  SLOT(device_close),
    SLOT(device_info),  SLOT(device_synchronize),
    SLOT(alloc),        SLOT(free),
    SLOT(mem_info),     SLOT(copy),
    SLOT(fill),         SLOT(kernels),
    SLOT(build_info),   SLOT(after_fork),
};
constexpr Slot kPinned[] = {SLOT(host_alloc), SLOT(host_free)};
constexpr Slot kVirtual[] = {
    SLOT(vmm_granularity), SLOT(vmm_reserve), SLOT(vmm_release), SLOT(vmm_create),
    SLOT(vmm_destroy),     SLOT(vmm_map),     SLOT(vmm_unmap),
};
constexpr Slot kStreams[] = {SLOT(stream_create), SLOT(stream_destroy), SLOT(stream_synchronize),
                             SLOT(stream_query)};
constexpr Slot kEvents[] = {
    SLOT(event_create), SLOT(event_destroy),     SLOT(event_record),  SLOT(event_wait),
    SLOT(event_query),  SLOT(event_synchronize), SLOT(event_elapsed),
};
constexpr Slot kComm[] = {
    COMM_SLOT(unique_id),   COMM_SLOT(init),      COMM_SLOT(split),    COMM_SLOT(call),
    COMM_SLOT(group_begin), COMM_SLOT(group_end), COMM_SLOT(abort),    COMM_SLOT(destroy),
    COMM_SLOT(mem_alloc),   COMM_SLOT(mem_free),  COMM_SLOT(describe), COMM_SLOT(async_error),
    COMM_SLOT(after_fork),
};
// Entries required of a deferred engine: ranks agree on the library's version before any rank makes a communicator.
constexpr Slot kLateComm[] = {COMM_SLOT(version)};
#undef SLOT
#undef COMM_SLOT

bool is_null(const void *table, const Slot &slot)
{
    void (*entry)() = nullptr;
    memcpy(&entry, static_cast<const char *>(table) + slot.offset, sizeof entry);
    return entry == nullptr;
}

// Returns the name of the first null entry, or nullptr.
template <size_t n>
const char *first_null(const void *table, const Slot (&slots)[n])
{
    for (const Slot &slot : slots)
        if (is_null(table, slot)) return slot.name;
    return nullptr;
}

// Returns the name of a null entry of a group with other entries present, or nullptr.
template <size_t n>
const char *broken_group(const void *table, const Slot (&slots)[n])
{
    size_t nulls = 0;
    for (const Slot &slot : slots) nulls += is_null(table, slot);
    return nulls == n ? nullptr : first_null(table, slots);
}

const char *missing_comm_entry(const yoke_backend_comm &table)
{
    if (const char *name = first_null(&table, kComm)) return name;
    return table.is_late ? first_null(&table, kLateComm) : nullptr;
}

const char *missing_entry(const yoke_backend &table)
{
    if (const char *name = first_null(&table, kRequired)) return name;
    if (const char *name = broken_group(&table, kPinned)) return name;
    if (const char *name = broken_group(&table, kVirtual)) return name;
    if (const char *name = broken_group(&table, kStreams)) return name;
    if (const char *name = broken_group(&table, kEvents)) return name;
    return table.comm ? missing_comm_entry(*table.comm) : nullptr;
}

constexpr const char *kRemedy = "rebuild it or install the matching module";

}  // namespace

std::string refusal(const char *kind, const yoke_backend &table, const std::string &source)
{
    const char *who = source.c_str();
    // The first two fields have the same place in every release; the code reads the rest after they agree.
    if (table.abi != YOKE_BACKEND_ABI)
        return format("%s has backend ABI %" PRIu32 ", but this library has %d; %s", who, table.abi,
                      YOKE_BACKEND_ABI, kRemedy);
    if (table.struct_size != sizeof(yoke_backend))
        return format("%s has a backend table of %" PRIu32
                      " bytes, but this library's table has %zu; %s",
                      who, table.struct_size, sizeof(yoke_backend), kRemedy);
    if (!table.kind || strcmp(table.kind, kind) != 0)
        return format("%s holds a backend of kind '%s', not '%s'; %s", who,
                      table.kind ? table.kind : "", kind, kRemedy);
    if (table.op_table_hash != YOKE_OP_TABLE_HASH)
        return format("%s was built from another op table (hash %016" PRIx64
                      ", but this library's is %016" PRIx64 "); %s",
                      who, table.op_table_hash, static_cast<uint64_t>(YOKE_OP_TABLE_HASH), kRemedy);
    if (table.kernel_count != YOKE_OP_COUNT)
        return format("%s has %" PRId32 " kernels, but the op table has %d ops; %s", who,
                      table.kernel_count, static_cast<int>(YOKE_OP_COUNT), kRemedy);
    if (table.comm &&
        (table.comm->abi != YOKE_BACKEND_ABI || table.comm->struct_size != sizeof *table.comm))
        return format("%s has a table of collectives of ABI %" PRIu32 " and %" PRIu32
                      " bytes, but this library's has ABI %d and %zu bytes; %s",
                      who, table.comm->abi, table.comm->struct_size, YOKE_BACKEND_ABI,
                      sizeof *table.comm, kRemedy);
    if (const char *name = missing_entry(table))
        return format("%s does not have the required entry '%s'; %s", who, name, kRemedy);
    return "";
}

std::string comm_refusal(const char *name, const yoke_backend_comm &table,
                         const std::string &source)
{
    const char *who = source.c_str();
    if (table.abi != YOKE_BACKEND_ABI)
        return format("%s has backend ABI %" PRIu32 ", but this library has %d; %s", who, table.abi,
                      YOKE_BACKEND_ABI, kRemedy);
    if (table.struct_size != sizeof(yoke_backend_comm))
        return format("%s has a table of collectives of %" PRIu32
                      " bytes, but this library's table has %zu; %s",
                      who, table.struct_size, sizeof(yoke_backend_comm), kRemedy);
    if (!table.name || strcmp(table.name, name) != 0)
        return format("%s holds the engine '%s', not '%s'; %s", who, table.name ? table.name : "",
                      name, kRemedy);
    if (const char *entry = missing_comm_entry(table))
        return format("%s does not have the required entry '%s'; %s", who, entry, kRemedy);
    if (table.is_late)
        return format(
            "%s runs its calls on streams of a device, but a module without devices has no streams; %s",
            who, kRemedy);
    return "";
}

Backend open_table(const char *kind, yoke_backend_get_fn get, const std::string &source)
{
    const yoke_backend *table = nullptr;
    const yoke_status status = get(&host_table(), &table);
    if (status != YOKE_OK) return {nullptr, take_backend_error(status, source.c_str()), true};
    if (!table) return {nullptr, source + " returned no table; " + kRemedy, true};
    std::string problem = refusal(kind, *table, source);
    if (!problem.empty()) return {nullptr, std::move(problem), true};
    return {table, "", false};
}

}  // namespace yoke::detail
