/* What the files of the fake driver share. */
#ifndef YOKE_TESTS_FAKES_CUDA_DRIVER_H
#define YOKE_TESTS_FAKES_CUDA_DRIVER_H

#include <cuda.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Why a call that needs a device ends at once, or success. */
CUresult fake_begin(const char *call);

/* Memory of a device that cuMemCreate has given and that is not free again. */
size_t fake_chunks_of(int device);

#ifdef __cplusplus
}
#endif
#endif
