// entries.h: the parts of the backend's table, by file. Contracts: core/backend/backend.h.
#pragma once

#include "kernels/cuda/host/cuda.h"

namespace yoke::cuda {

// kernels.cpp: YOKE_OP_COUNT of them
extern const yoke_kernel_fn kKernels[];

// device.cpp
yoke_status device_count(int32_t *count);
void why_unavailable(char *text, uint64_t capacity);
yoke_status device_open(int32_t index, void **device);
void device_close(void *device);
yoke_status device_info(void *device, yoke_backend_device_info *info);
yoke_status device_synchronize(void *device);
yoke_status mem_info(void *device, uint64_t *free_bytes, uint64_t *total_bytes);

// memory.cpp
yoke_status alloc(void *device, uint64_t bytes, void **pointer);
yoke_status free_block(void *device, void *pointer, uint64_t bytes);
yoke_status host_alloc(void *device, uint64_t bytes, void **pointer);
yoke_status host_free(void *device, void *pointer, uint64_t bytes);

// copy.cpp
yoke_status copy(void *device, void *dst, const void *src, uint64_t bytes, int32_t direction,
                 void *stream);
yoke_status fill(void *device, void *dst, uint8_t value, uint64_t bytes, void *stream);

// vmm.cpp
yoke_status vmm_granularity(void *device, uint64_t *bytes);
yoke_status vmm_reserve(void *device, uint64_t bytes, void **address);
yoke_status vmm_release(void *device, void *address, uint64_t bytes);
yoke_status vmm_create(void *device, uint64_t bytes, uint64_t *chunk);
yoke_status vmm_destroy(void *device, uint64_t chunk);
yoke_status vmm_map(void *device, void *address, uint64_t bytes, uint64_t chunk);
yoke_status vmm_unmap(void *device, void *address, uint64_t bytes);

// streams.cpp
yoke_status stream_create(void *device, int32_t priority, void **stream);
yoke_status stream_destroy(void *device, void *stream);
yoke_status stream_synchronize(void *device, void *stream);
yoke_status stream_query(void *device, void *stream, int32_t *idle);
yoke_status event_create(void *device, uint32_t flags, void **event);
yoke_status event_destroy(void *device, void *event);
yoke_status event_record(void *device, void *event, void *stream);
yoke_status event_wait(void *device, void *event, void *stream);
yoke_status event_query(void *device, void *event, int32_t *reached);
yoke_status event_synchronize(void *device, void *event);
yoke_status event_elapsed(void *device, void *start, void *end, double *seconds);

// graph.cpp
yoke_status graph_begin(void *device, void *stream);
yoke_status graph_end(void *device, void *stream, void **graph);
yoke_status graph_launch(void *device, void *graph, void *stream);
yoke_status graph_destroy(void *device, void *graph);

}  // namespace yoke::cuda
