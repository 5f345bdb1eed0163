// Table of the CUDA module, and the symbol by which the core gets the table.
#include <cstdio>
#include <cstring>

#include "core/backend/ops.inc"
#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/nccl/engine.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

static const char *build_info()
{
    static char text[96];
    static const int written =
        snprintf(text, sizeof text, "CUDA %d.%d for compute capabilities %s", CUDART_VERSION / 1000,
                 CUDART_VERSION % 1000 / 10, YOKE_CUDA_ARCHS);
    (void)written;
    return text;
}

static yoke_status find_engine(const char *name, int64_t *version, char *why, uint64_t capacity)
{
    char text[128];
    if (strcmp(name, "cudnn") == 0) {
        *version = cudnn_version();
        snprintf(why, capacity, "%s", cudnn_why_unavailable());
        return YOKE_OK;
    }
    snprintf(text, sizeof text, "the cuda module does not support the engine '%.64s'; use 'cudnn'",
             name);
    return g_host->set_error(YOKE_E_UNSUPPORTED, 0, text);
}

// Runs a kernel's entry inside the context of its device.
static yoke_status launch_kernel(const yoke_launch *launch, yoke_kernel_fn kernel)
{
    const Scope scope(launch->device, op_name(launch->op));
    return scope.status() ? scope.status() : kernel(launch);
}

static const yoke_backend kBackend = {
    .struct_size = sizeof(yoke_backend),
    .abi = YOKE_BACKEND_ABI,
    .op_table_hash = YOKE_OP_TABLE_HASH,
    .kind = "cuda",
    YOKE_DEVICE_ENTRIES(YOKE_TABLE_ENTRY)  // device_count to mem_info
        .host_alloc = host_alloc,
    .host_free = host_free,
    YOKE_STREAM_ENTRIES(YOKE_TABLE_ENTRY)  // vmm_granularity to fill
        .kernels = kKernels,
    .kernel_count = YOKE_OP_COUNT,
    .reserved = 0,
    .launch = launch_kernel,
    .graph_begin = graph_begin,
    .graph_end = graph_end,
    .graph_launch = graph_launch,
    .graph_destroy = graph_destroy,
    .comm = &nccl::kEngine,
    .engine = find_engine,
    .build_info = build_info,
    .after_fork = after_fork,
    .rest = nullptr,
};

}  // namespace yoke::cuda

extern "C" __attribute__((visibility("default"))) yoke_status yoke_backend_get_v1(
    const yoke_host *host, const yoke_backend **out)
{
    if (host->abi != YOKE_BACKEND_ABI)
        return host->set_error(YOKE_E_UNSUPPORTED, host->abi,
                               "the cuda module was built for another version of the host");
    yoke::cuda::g_host = host;
    *out = &yoke::cuda::kBackend;
    return YOKE_OK;
}
