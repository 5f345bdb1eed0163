/*
 * yoke/work.h: what goes on after the call that began it has returned.
 */
#ifndef YOKE_WORK_H
#define YOKE_WORK_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_work yoke_work;

/* One more reference; returns its argument, which may be NULL. [any-thread] */
YOKE_API yoke_work *yoke_work_retain(yoke_work *work);

/* One reference less; the work goes on. NULL is ignored. [any-thread] */
YOKE_API void yoke_work_release(yoke_work *work);

/* Waits for its end, at most `timeout` seconds; below 0: as long as it takes, as yoke_work_follow does. Errors: TIMEOUT
 * if it goes on; FORKED in a forked child of the process where it goes on; STATE in the thread that does it, where a
 * drop function was called; what the work failed with, each time it is asked. [any-thread] */
YOKE_API yoke_status yoke_work_wait(yoke_work *work, double timeout);

/* The same, but of a collective on a device only what the host does of it is waited for: what the calling thread gives
 * to its current stream from then on comes behind the rest. Errors: those of yoke_work_wait; STATE while a graph is
 * captured. [any-thread] */
YOKE_API yoke_status yoke_work_follow(yoke_work *work, double timeout);

/* 1 if it has ended, well or not, or goes on in a parent process; 0 if not, and on NULL. [any-thread] */
YOKE_API int32_t yoke_work_done(yoke_work *work);

/* How many bytes of how many are done; either pointer may be NULL. [any-thread] */
YOKE_API yoke_status yoke_work_progress(yoke_work *work, int64_t *bytes, int64_t *of);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_WORK_H */
