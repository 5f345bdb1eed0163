/*
 * yoke/engines.h: deterministic algorithms, settings of cuDNN behind the ops on CUDA devices, and its presence.
 *
 * The settings belong to the process and hold for every thread, from the next op on. A graph keeps the settings of
 * its capture. The first op with a use for cuDNN looks for the library. If cuDNN cannot serve, the ops' own kernels
 * do, after one warning with the reason.
 */
#ifndef YOKE_ENGINES_H
#define YOKE_ENGINES_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Settings. The initial value is the variable's value, else the value below. Flags are 0 or 1. */
#define YOKE_CUDNN_ENABLED \
    0 /* 1; 0: it is not used and, if so from the start, never mapped. YOKE_CUDNN_ENABLED */
#define YOKE_CUDNN_BENCHMARK \
    1 /* 0; 1: the quickest plan of each shape, as measured once. YOKE_CUDNN_BENCHMARK */
#define YOKE_CUDNN_BENCHMARK_LIMIT \
    2 /* 10: plans that are measured, 0: all. YOKE_CUDNN_BENCHMARK_LIMIT */
#define YOKE_CUDNN_DETERMINISTIC \
    3 /* 0: any order of sums; 1: the same bits each time. YOKE_CUDNN_DETERMINISTIC */
#define YOKE_CUDNN_WORKSPACE_LIMIT \
    4 /* 256 MiB: bytes of a call's workspace. YOKE_CUDNN_WORKSPACE_LIMIT */
#define YOKE_CUDNN_SETTING_COUNT 5

/* Sets a setting. For a flag every value but 0 is 1. Errors: VALUE for another setting, for a limit below 0, and for
 * a benchmark limit above 2147483647. [any-thread] */
YOKE_API yoke_status yoke_cudnn_set(int32_t setting, int64_t value);

/* Reads a setting. Errors: VALUE for an unknown setting, or if its variable cannot be read. [any-thread] */
YOKE_API yoke_status yoke_cudnn_get(int32_t setting, int64_t *value);

/* Returns the version, 91900 for 9.19.0; 0 if cuDNN cannot serve; -1 on failure. Looks for cuDNN, unless cuDNN is not
 * enabled or there is no CUDA device. [any-thread] */
YOKE_API int64_t yoke_cudnn_version(void);

/* Returns why cuDNN cannot serve, one sentence with its remedy; "" if cuDNN can serve. Valid until the thread's next
 * call of this function. Looks for cuDNN as above. [any-thread] */
YOKE_API const char *yoke_cudnn_why_unavailable(void);

/* Sets whether ops must give the same bits in each run, on the same kind of device with the same libraries. Then no
 * sum comes in any order, whatever YOKE_CUDNN_DETERMINISTIC says, and no plan is chosen by its time; every op has
 * such a way. The default is 0, unless YOKE_DETERMINISTIC_ALGORITHMS is 1. On the CPU ops give the same bits in any
 * case. [any-thread] */
YOKE_API yoke_status yoke_use_deterministic_algorithms(int32_t enabled);

/* Returns 1 or 0; -1 if YOKE_DETERMINISTIC_ALGORITHMS cannot be read. [any-thread] */
YOKE_API int32_t yoke_are_deterministic_algorithms_enabled(void);

/* Sets whether a tensor without axes is weak in promotion beside a tensor with axes, as a number of a script is: the
 * result has the dtype of the tensor with axes, unless that dtype is of a lower class. Scripts written for PyTorch
 * rely on it. Holds for the whole process; the default is 0. [any-thread] */
YOKE_API yoke_status yoke_set_weak_zero_dim(int32_t weak);

/* Sets the dtype of floating results that no argument states: of new tensors, and of ops that make floats of integers.
 * Scripts written for PyTorch rely on it. Holds for the whole process; the default is YOKE_F32, and so is
 * YOKE_NONE. Errors: TYPE unless the dtype is YOKE_F64, YOKE_F32, YOKE_F16 or YOKE_BF16. [any-thread] */
YOKE_API yoke_status yoke_set_default_dtype(yoke_dtype dtype);

/* Returns the default dtype. [any-thread] */
YOKE_API yoke_dtype yoke_get_default_dtype(void);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_ENGINES_H */
