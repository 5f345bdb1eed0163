/*
 * yoke/engines.h: what cuDNN may do behind the ops on CUDA devices, and whether it is there.
 *
 * The settings are the process's and hold for every thread, from the next op on; a graph keeps those of its capture.
 * cuDNN is looked for when the first op could use it. Where it cannot serve, the ops' own kernels do, after one
 * warning that says why.
 */
#ifndef YOKE_ENGINES_H
#define YOKE_ENGINES_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A setting's first value is its variable's, else the one below. Flags are 0 or 1. */
#define YOKE_CUDNN_ENABLED \
    0 /* 1; 0: it is not used and, if so from the start, never mapped. YOKE_CUDNN_ENABLED */
#define YOKE_CUDNN_BENCHMARK \
    1 /* 0; 1: the quickest plan of each shape, as measured once. YOKE_CUDNN_BENCHMARK */
#define YOKE_CUDNN_BENCHMARK_LIMIT \
    2 /* 10: plans that are measured, 0: all. YOKE_CUDNN_BENCHMARK_LIMIT */
#define YOKE_CUDNN_DETERMINISTIC \
    3 /* 1: the same bits each time; 0: any order of sums. YOKE_CUDNN_DETERMINISTIC */
#define YOKE_CUDNN_WORKSPACE_LIMIT \
    4 /* 256 MiB: bytes of a call's workspace. YOKE_CUDNN_WORKSPACE_LIMIT */
#define YOKE_CUDNN_SETTING_COUNT 5

/* Of a flag every value but 0 is 1. Errors: VALUE for another setting, for a limit below 0, and for a benchmark limit
 * above 2147483647. [any-thread] */
YOKE_API yoke_status yoke_cudnn_set(int32_t setting, int64_t value);

/* Errors: VALUE for another setting, or where its variable cannot be read. [any-thread] */
YOKE_API yoke_status yoke_cudnn_get(int32_t setting, int64_t *value);

/* 91900 is 9.19.0; 0 where it cannot serve; -1 on failure. Looks for it, unless it is not enabled or there is no CUDA
 * device. [any-thread] */
YOKE_API int64_t yoke_cudnn_version(void);

/* Why it cannot serve, one sentence with its remedy; "" where it can. Valid until the thread's next call of this.
 * Looks for it as above. [any-thread] */
YOKE_API const char *yoke_cudnn_why_unavailable(void);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_ENGINES_H */
