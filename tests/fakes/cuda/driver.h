/* Declarations for the files of the fake driver. */
#ifndef YOKE_TESTS_FAKES_CUDA_DRIVER_H
#define YOKE_TESTS_FAKES_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Returns why a call on a device ends at once, or success. */
CUresult fake_begin(const char *call);

/* Returns a device's memory from cuMemCreate, without memory already freed. */
size_t fake_chunks_of(int device);

#ifdef __cplusplus
}
#endif
#endif
