/*
 * fake.h: what the fake driver (driver.c, a libcuda.so.1) and the fake runtime (runtime.c) share.
 *
 * They do on host memory what CUDA's calls do on a GPU's, at once, and refuse calls that CUDA would refuse: before
 * cuInit, without a context, with a handle that is not live. The environment chooses how they behave, at each call:
 *   FAKE_CUDA_VERSION   what cuDriverGetVersion tells, default 13000
 *   FAKE_CUDA_DEVICES   compute capabilities, one for each device: "9.0,7.5"; default one of 9.0, "" for none
 *   FAKE_CUDA_FAIL      calls that fail and with which number: "cuInit=803,cudaMalloc=2"
 *   FAKE_CUBLASLT_VERSION  what cublasLtGetVersion tells, default that of the header
 */
#ifndef YOKE_TESTS_FAKES_CUDA_FAKE_H
#define YOKE_TESTS_FAKES_CUDA_FAKE_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* Of every device. */
#define FAKE_MEMORY ((size_t)1 << 30)

/* The number with which a call is to fail, else 0. */
static inline int fake_fault(const char *call)
{
    const char *list = getenv("FAKE_CUDA_FAIL");
    const size_t length = strlen(call);
    while (list && *list) {
        if (strncmp(list, call, length) == 0 && list[length] == '=') return atoi(list + length + 1);
        list = strchr(list, ',');
        if (list) ++list;
    }
    return 0;
}

/* Work that a stream does in its turn: `work` gives a CUDA error number, `drop` frees its context. The call takes the
 * context over whether it succeeds or not. */
#include <driver_types.h>
#ifdef __cplusplus
extern "C" {
#endif
cudaError_t fake_enqueue(const char *call, cudaStream_t stream, int (*work)(void *),
                         void (*drop)(void *), void *context);

/* Fake libraries (cublaslt.cpp) are not linked with the runtime: it leaves its fake_enqueue with the driver, which
 * exports it under this name. */
typedef cudaError_t (*fake_enqueue_fn)(const char *, cudaStream_t, int (*)(void *), void (*)(void *),
                                       void *);
extern fake_enqueue_fn fake_runtime_enqueue;
#ifdef __cplusplus
}
#endif

#endif
