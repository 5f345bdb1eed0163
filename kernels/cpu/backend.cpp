// Table of the CPU backend, and the function by which the core gets it. The backend is embedded in libyoke.
#include "core/backend/ops.inc"
#include "kernels/cpu/comm/engine.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/onednn.h"

namespace yoke::cpu {

static void after_fork()
{
    threads_after_fork();
    vmm_after_fork();
}

static yoke_backend g_backend = {
    .struct_size = sizeof(yoke_backend),
    .abi = YOKE_BACKEND_ABI,
    .op_table_hash = YOKE_OP_TABLE_HASH,
    .kind = "cpu",
    YOKE_DEVICE_ENTRIES(YOKE_TABLE_ENTRY)  // device_count to mem_info
        .host_alloc = alloc,               // all of the CPU's memory is host memory
    .host_free = free_block,
    YOKE_STREAM_ENTRIES(YOKE_TABLE_ENTRY)  // vmm_granularity to fill
        .kernels = nullptr,                // set by select_kernels
    .kernel_count = YOKE_OP_COUNT,
    .reserved = 0,
    .launch = nullptr,
    .graph_begin = nullptr,  // the core keeps the launches
    .graph_end = nullptr,
    .graph_launch = nullptr,
    .graph_destroy = nullptr,
    .comm = nullptr,  // set by select_kernels
    .engine = nullptr,
    .build_info = build_info,
    .after_fork = after_fork,
    .rest = rest_threads,
};

}  // namespace yoke::cpu

// Keeps the host's table and returns the backend's table, with the kernels of the chosen instruction set. The core
// calls this function once, before any other entry. Returns YOKE_E_UNSUPPORTED if the ABI of the host is another
// version.
extern "C" __attribute__((visibility("hidden"))) yoke_status yoke_cpu_backend_get(
    const yoke_host *host, const yoke_backend **out)
{
    using namespace yoke::cpu;
    if (host->abi != YOKE_BACKEND_ABI)
        return host->set_error(YOKE_E_UNSUPPORTED, host->abi,
                               "the cpu backend was built for another version of the host");
    g_host = host;
    const KernelTable *table = nullptr;
    if (yoke_status status = select_kernels(&table)) return status;
    describe_build(table->name);
    prepare_onednn();
    g_backend.kernels = table->kernels;
    g_backend.comm = comm::engine(table->combine);
    *out = &g_backend;
    return YOKE_OK;
}
