/* yoke/work.h: work that goes on after its call has returned. */
#ifndef YOKE_WORK_H
#define YOKE_WORK_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct yoke_work yoke_work;

/* Adds a reference and returns the argument, which may be NULL. [any-thread] */
YOKE_API yoke_work *yoke_work_retain(yoke_work *work);

/* Releases a reference; the work goes on. NULL is ignored. [any-thread] */
YOKE_API void yoke_work_release(yoke_work *work);

/* Waits for the end of the work, at most `timeout` seconds; below 0: without limit, as yoke_work_follow does. Errors:
 * TIMEOUT if the work goes on; FORKED in a forked child if the work goes on in the parent; STATE in the thread that
 * does the work, within a drop function; the failure of the work, at each call. [any-thread] */
YOKE_API yoke_status yoke_work_wait(yoke_work *work, double timeout);

/* Waits as yoke_work_wait does; but for a collective on a device the call waits only for the host's part. Later work
 * on the calling thread's current stream is ordered after the rest. Errors: the errors of yoke_work_wait; STATE while
 * a graph is captured. [any-thread] */
YOKE_API yoke_status yoke_work_follow(yoke_work *work, double timeout);

/* Returns 1 if the work has ended, well or not, or goes on in a parent process; 0 if not, and on NULL. [any-thread] */
YOKE_API int32_t yoke_work_done(yoke_work *work);

/* Reports the done bytes and all bytes; either pointer may be NULL. [any-thread] */
YOKE_API yoke_status yoke_work_progress(yoke_work *work, int64_t *bytes, int64_t *of);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_WORK_H */
