/*
 * yoke/preempt.h: signals by which a scheduler or an operator asks the process to end, kept until the program has
 * saved.
 *
 *     yoke_preempt_watch(NULL, 0);                    from now on TERM is kept
 *     for (…) {
 *         train();
 *         if (yoke_preempted()) { save(); break; }
 *     }
 *     yoke_preempt_resume(0);                         now TERM does what it did before
 *
 * A watched signal does nothing but tell who watches it. Each of them answers once, by yoke_preempt_resume or
 * yoke_preempt_clear. When all have, and one of them resumed, the signal is raised again with the disposition that was
 * found, and so ends the process with the status of its signal, is ignored (as by a process under nohup), or runs the
 * host's own handler with its own flags; a si_pid in there is this process. Where the process goes on, so does the
 * watch. The same signal counts as one until then, however often it comes: whoever saves is not disturbed.
 *
 * System calls go on where a watched signal comes (SA_RESTART); sleeps and polls fail with EINTR, as with any signal.
 * Calls of Yoke do not return earlier: a loop that must answer soon waits in slices, yoke_work_wait(work, 0.1).
 *
 * A forked child watches nothing: it has the dispositions that were found, and no signal of its parent's.
 * yoke_shutdown leaves watches in place.
 */
#ifndef YOKE_PREEMPT_H
#define YOKE_PREEMPT_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Of the program itself, whose watch has the number 0 ------------------------------------------------- */

/* Watches signals: "TERM" or "SIGTERM"; INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR serve as well. NULL, or a
 * count of 0: TERM alone. Called again it adds to them. One that is ignored is watched all the same, and ignored again
 * when it is given on. Errors: VALUE, with those that serve, for a name that is unknown, of a signal that cannot be
 * caught (KILL, STOP), or of a fault (SEGV, …); nothing is watched then. [any-thread] */
YOKE_API yoke_status yoke_preempt_watch(const char *const *signals, int64_t count);

/* The number of the signal that came and was not answered, as SIGTERM of <signal.h>; 0 if none did. It stays until it
 * is answered; then the next one is told, where several came. Cheap enough for every step. [any-thread] */
YOKE_API int32_t yoke_preempted(void);

/* ---- Of bindings and plugins, which share the process with hosts that they do not know ------------------- */

/* One more watch beside all others. *id is its number, from 1, which no other will have. Errors: as
 * yoke_preempt_watch. [any-thread] */
YOKE_API yoke_status yoke_preempt_add(const char *const *signals, int64_t count, int64_t *id);

/* What yoke_preempted tells, of the watch of this number; 0 for a number that none has. [any-thread] */
YOKE_API int32_t yoke_preempt_signal(int64_t id);

/* The number of a signal's name. 0, with a last error as yoke_preempt_watch has it, where it does not serve.
 * [any-thread] */
YOKE_API int32_t yoke_preempt_number(const char *name);

/* ---- Answers --------------------------------------------------------------------------------------------- */

/* Answers the signal that was told last to this watch: whoever had it before shall have it. Does nothing where none was
 * told. The last of all answers raises it, in the calling thread, and returns where the process goes on.
 * Errors: VALUE for a number that no watch has. [any-thread] */
YOKE_API yoke_status yoke_preempt_resume(int64_t id);

/* The same, but the signal is done with: nobody gets it for this answer's sake. Errors: VALUE for a number that no
 * watch has. [any-thread] */
YOKE_API yoke_status yoke_preempt_clear(int64_t id);

/* Ends a watch. What came and was not answered counts as resumed, so that no signal is lost. Where nobody else watches
 * a signal, the disposition that was found is put back; a handler that somebody has installed since stays.
 * Errors: VALUE for a number that no watch has. [any-thread] */
YOKE_API yoke_status yoke_preempt_unwatch(int64_t id);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_PREEMPT_H */
