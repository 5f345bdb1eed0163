/*
 * yoke/amp.h: mixed precision.
 *
 * While an autocast region is in force in a thread, each op runs in the dtype that suits it: matrix
 * products in a half, what needs range or precision in float32. Which is which stands in docs/ops.md;
 * arguments are cast as needed, float64 and integers never, and casts are recorded for yoke_backward.
 * Casts of float32 weights (leaves that require grad) are kept until the outermost region is released.
 */
#ifndef YOKE_AMP_H
#define YOKE_AMP_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Autocast ---------------------------------------------------------------------------------------- */

typedef struct yoke_autocast yoke_autocast;

/* A region, nested in the one in force in the calling thread, whose kept casts it shares. It comes into
 * force with yoke_autocast_swap. `enabled` 0: ops inside run in the dtypes they are given. `dtype` is
 * YOKE_F16, YOKE_BF16, or YOKE_NONE for what suits each device: float16 on cuda, bfloat16 on cpu.
 * `cache_enabled` 0: weights are cast anew by each op. Errors: VALUE for another dtype. [any-thread] */
YOKE_API yoke_status yoke_autocast_create(int32_t enabled, yoke_dtype dtype, int32_t cache_enabled,
                                          yoke_autocast **out);

/* Puts a region (NULL: none) in force in the calling thread and returns the one before, so that a scope
 * can restore it. Both are borrowed: a region is kept until it is in force nowhere. A region serves one
 * thread at a time. [any-thread] */
YOKE_API yoke_autocast *yoke_autocast_swap(yoke_autocast *region);

/* The kept casts go with the last of the nested regions. [any-thread] */
YOKE_API void yoke_autocast_release(yoke_autocast *region);

/* 1 while ops of the calling thread are cast. [any-thread] */
YOKE_API int32_t yoke_is_autocast_enabled(void);

/* The half that ops on `device` (NULL: the current one) are cast to in the region in force, and in a
 * region without a dtype where none is. YOKE_NONE on failure. [any-thread] */
YOKE_API yoke_dtype yoke_autocast_dtype(yoke_device *device);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_AMP_H */
