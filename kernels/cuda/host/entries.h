// entries.h: the parts of the backend's table, by file. Contracts: core/backend/backend.h.
#pragma once

#include "kernels/common/entries.h"
#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// kernels.cpp: YOKE_OP_COUNT of them
extern const yoke_kernel_fn kKernels[];

// device.cpp; alloc and free_block in memory.cpp
YOKE_DEVICE_ENTRIES(YOKE_DECLARE_ENTRY)

// Allocates pinned host memory, which host_free releases. Both are in memory.cpp.
yoke_status host_alloc(void *device, uint64_t bytes, void **pointer);
yoke_status host_free(void *device, void *pointer, uint64_t bytes);

// vmm.cpp, streams.cpp, copy.cpp
YOKE_STREAM_ENTRIES(YOKE_DECLARE_ENTRY)

// Begins to capture the work of a stream. The entries for graphs are in graph.cpp.
yoke_status graph_begin(void *device, void *stream, uint32_t flags);
yoke_status graph_end(void *device, void *stream, void **graph);
yoke_status graph_launch(void *device, void *graph, void *stream);
yoke_status graph_destroy(void *device, void *graph);

}  // namespace yoke::cuda
