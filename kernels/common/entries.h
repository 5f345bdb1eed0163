// Entries that every backend has. This header declares the entries from the contract's own types
// (core/backend/backend.h) and puts them into the backend's table, in the order of the table. The entries of every
// engine of collectives are handled alike.
//
// Contract: ENTRY(member, function) for each such member of yoke_backend, or of yoke_backend_comm, with the function
// as its value. A backend or engine fills in the entries between and after both lists itself.
#pragma once

#include <type_traits>

#include "core/backend/backend.h"

#define YOKE_DEVICE_ENTRIES(ENTRY)                \
    ENTRY(device_count, device_count)             \
    ENTRY(why_unavailable, why_unavailable)       \
    ENTRY(device_open, device_open)               \
    ENTRY(device_close, device_close)             \
    ENTRY(device_info, device_info)               \
    ENTRY(device_synchronize, device_synchronize) \
    ENTRY(alloc, alloc)                           \
    ENTRY(free, free_block)                       \
    ENTRY(mem_info, mem_info)

#define YOKE_STREAM_ENTRIES(ENTRY)                \
    ENTRY(vmm_granularity, vmm_granularity)       \
    ENTRY(vmm_reserve, vmm_reserve)               \
    ENTRY(vmm_release, vmm_release)               \
    ENTRY(vmm_create, vmm_create)                 \
    ENTRY(vmm_destroy, vmm_destroy)               \
    ENTRY(vmm_map, vmm_map)                       \
    ENTRY(vmm_unmap, vmm_unmap)                   \
    ENTRY(stream_create, stream_create)           \
    ENTRY(stream_destroy, stream_destroy)         \
    ENTRY(stream_synchronize, stream_synchronize) \
    ENTRY(stream_query, stream_query)             \
    ENTRY(event_create, event_create)             \
    ENTRY(event_destroy, event_destroy)           \
    ENTRY(event_record, event_record)             \
    ENTRY(event_wait, event_wait)                 \
    ENTRY(event_query, event_query)               \
    ENTRY(event_synchronize, event_synchronize)   \
    ENTRY(event_elapsed, event_elapsed)           \
    ENTRY(copy, copy)                             \
    ENTRY(fill, fill)

#define YOKE_COMM_CALL_ENTRIES(ENTRY) \
    ENTRY(unique_id, unique_id)       \
    ENTRY(init, init)                 \
    ENTRY(split, split)               \
    ENTRY(call, call)                 \
    ENTRY(group_begin, group_begin)   \
    ENTRY(group_end, group_end)       \
    ENTRY(abort, abort)

#define YOKE_COMM_MEMORY_ENTRIES(ENTRY) \
    ENTRY(destroy, destroy)             \
    ENTRY(mem_alloc, mem_alloc)         \
    ENTRY(mem_free, mem_free)           \
    ENTRY(describe, describe)           \
    ENTRY(async_error, async_error)

#define YOKE_DECLARE_ENTRY(member, function) \
    std::remove_pointer_t<decltype(yoke_backend::member)> function;
#define YOKE_TABLE_ENTRY(member, function) .member = function,
