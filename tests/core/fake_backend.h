// fake_backend.h: a small backend over malloc that counts calls, and fails on command.
#pragma once

#include "core/backend/backend.h"
#include "core/backend/ops.inc"
#include "core/backend/registry.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace yoke::test {

struct FakeState {
    std::atomic<int> devices{1};
    std::atomic<int> gets{0}, opens{0}, allocs{0}, frees{0}, waits{0}, forks{0};
    std::atomic<uint32_t> launch_flags{0}, benchmark_limit{0};  // values at the last launch
    std::atomic<uint64_t> workspace_limit{0};
    std::atomic<int64_t> held{0};
    std::atomic<int64_t> capacity{int64_t{1} << 40};
    std::atomic<yoke_status> open_status{YOKE_OK}, get_status{YOKE_OK}, alloc_status{YOKE_OK};
    uint32_t alignment = 64;
    const yoke_host *host = nullptr;
};
inline FakeState fake;

namespace fake_entries {

inline yoke_status told(yoke_status status, const char *message)
{
    return fake.host ? fake.host->set_error(status, 77, message)
                     : detail::host_table().set_error(status, 77, message);
}
inline yoke_status device_count(int32_t *count)
{
    *count = fake.devices;
    return YOKE_OK;
}
inline void why_unavailable(char *text, uint64_t capacity)
{
    snprintf(text, capacity, "%s", fake.devices ? "" : "the fake was told to have none");
}
inline char handles[8];
inline yoke_status device_open(int32_t index, void **device)
{
    if (fake.open_status != YOKE_OK) return told(fake.open_status, "the fake was told to fail");
    ++fake.opens;
    *device = &handles[index];
    return YOKE_OK;
}
inline void device_close(void *) {}
inline yoke_status device_info(void *, yoke_backend_device_info *info)
{
    snprintf(info->name, sizeof info->name, "a fake");
    info->total_memory = static_cast<uint64_t>(fake.capacity.load());
    info->alignment = fake.alignment;
    return YOKE_OK;
}
inline yoke_status wait(void *)
{
    ++fake.waits;
    return YOKE_OK;
}
inline yoke_status alloc(void *, uint64_t bytes, void **pointer)
{
    if (fake.alloc_status != YOKE_OK) return told(fake.alloc_status, "the fake was told to fail");
    if (fake.held + static_cast<int64_t>(bytes) > fake.capacity)
        return told(YOKE_E_OOM, "the fake is full");
    ++fake.allocs;
    fake.held += static_cast<int64_t>(bytes);
    *pointer = aligned_alloc(64, (bytes + 63) / 64 * 64);
    return YOKE_OK;
}
inline yoke_status free_block(void *, void *pointer, uint64_t bytes)
{
    ++fake.frees;
    fake.held -= static_cast<int64_t>(bytes);
    free(pointer);
    return YOKE_OK;
}
inline yoke_status mem_info(void *, uint64_t *free_bytes, uint64_t *total)
{
    *total = static_cast<uint64_t>(fake.capacity.load());
    *free_bytes = static_cast<uint64_t>(fake.capacity - fake.held);
    return YOKE_OK;
}
inline yoke_status copy(void *, void *dst, const void *src, uint64_t bytes, int32_t, void *)
{
    memcpy(dst, src, bytes);
    return YOKE_OK;
}
inline yoke_status fill(void *, void *dst, uint8_t value, uint64_t bytes, void *)
{
    memset(dst, value, bytes);
    return YOKE_OK;
}
inline yoke_status kernel(const yoke_launch *launch)
{
    fake.launch_flags = launch->flags;
    fake.benchmark_limit = launch->benchmark_limit;
    fake.workspace_limit = launch->workspace_limit;
    return YOKE_OK;
}
inline const char *build_info()
{
    return "fake 1.0";
}
inline void after_fork()
{
    ++fake.forks;
}

}  // namespace fake_entries

// Op 0 and matmul have a kernel, no other.
inline const auto kFakeKernels = [] {
    std::array<yoke_kernel_fn, YOKE_OP_COUNT> all{};
    all[0] = all[YOKE_OP_MATMUL] = fake_entries::kernel;
    return all;
}();

inline yoke_backend fake_table(const char *kind)
{
    yoke_backend table{};
    table.struct_size = sizeof table;
    table.abi = YOKE_BACKEND_ABI;
    table.op_table_hash = YOKE_OP_TABLE_HASH;
    table.kind = kind;
    table.device_count = fake_entries::device_count;
    table.why_unavailable = fake_entries::why_unavailable;
    table.device_open = fake_entries::device_open;
    table.device_close = fake_entries::device_close;
    table.device_info = fake_entries::device_info;
    table.device_synchronize = fake_entries::wait;
    table.alloc = fake_entries::alloc;
    table.free = fake_entries::free_block;
    table.mem_info = fake_entries::mem_info;
    table.copy = fake_entries::copy;
    table.fill = fake_entries::fill;
    table.kernels = kFakeKernels.data();
    table.kernel_count = YOKE_OP_COUNT;
    table.build_info = fake_entries::build_info;
    table.after_fork = fake_entries::after_fork;
    return table;
}

// A yoke_backend_get_fn of kind "fake".
inline yoke_status get_fake(const yoke_host *host, const yoke_backend **out)
{
    static const yoke_backend table = fake_table("fake");
    ++fake.gets;
    fake.host = host;
    if (fake.get_status != YOKE_OK)
        return host->set_error(fake.get_status, 77, "the fake was told to fail");
    *out = &table;
    return YOKE_OK;
}

}  // namespace yoke::test
