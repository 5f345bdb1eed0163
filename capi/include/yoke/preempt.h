/*
 * yoke/preempt.h: signals with which a scheduler or an operator asks the process to end, kept until the program has
 * saved.
 *
 *     yoke_preempt_watch(NULL, 0);                    from now on TERM is kept
 *     for (…) {
 *         train();
 *         if (yoke_preempted()) { save(); break; }
 *     }
 *     yoke_preempt_resume(0);                         now TERM does what it did before
 *
 * A watched signal only sets the state of its watches. Each watch answers once, by yoke_preempt_resume or
 * yoke_preempt_clear. When all watches have answered and at least one resumed, the signal is raised again with the
 * former disposition. So the signal ends the process with its status, is ignored (as by a process under nohup), or
 * runs the host program's own handler with its own flags; si_pid is then this process. If the process goes on, the
 * watch goes on too. Until then repeated signals of the same number count once, so a save is not disturbed.
 *
 * System calls go on after a watched signal (SA_RESTART); sleeps and polls fail with EINTR, as with any signal. Calls
 * of Yoke do not return earlier: a loop with a short response time waits in slices, yoke_work_wait(work, 0.1).
 *
 * A forked child watches nothing: it has the former dispositions, and no signal of its parent. yoke_shutdown leaves
 * watches in place.
 */
#ifndef YOKE_PREEMPT_H
#define YOKE_PREEMPT_H

#include "yoke/types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- The program's own watch, number 0 ------------------------------------------------------------------- */

/* Watches signals: "TERM" or "SIGTERM"; INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP and PWR serve as well. NULL, or
 * a count of 0: TERM alone. A second call adds signals. An ignored signal is watched too, and ignored again when it
 * is resumed. Errors: VALUE, with the valid names, for an unknown name, for a signal that cannot be caught (KILL,
 * STOP), or for a fault (SEGV, …); nothing is watched then. [any-thread] */
YOKE_API yoke_status yoke_preempt_watch(const char *const *signals, int64_t count);

/* Returns the number of the signal that arrived and was not answered, as SIGTERM of <signal.h>; 0 if there is none.
 * The number stays until the answer; then the call returns the next signal, if several arrived. Cheap enough for
 * every step. [any-thread] */
YOKE_API int32_t yoke_preempted(void);

/* ---- Watches of bindings and plugins, which share the process with unknown host programs ----------------- */

/* Adds a watch beside all others. *id is its number, from 1, never used again. Errors: as yoke_preempt_watch.
 * [any-thread] */
YOKE_API yoke_status yoke_preempt_add(const char *const *signals, int64_t count, int64_t *id);

/* Returns yoke_preempted's number for the watch with this id; 0 if there is no such watch. [any-thread] */
YOKE_API int32_t yoke_preempt_signal(int64_t id);

/* Returns the number of a signal's name. 0, with a last error as in yoke_preempt_watch, for a name that cannot be
 * watched. [any-thread] */
YOKE_API int32_t yoke_preempt_number(const char *name);

/* ---- Answers --------------------------------------------------------------------------------------------- */

/* Answers the signal last reported to this watch: the former disposition shall get the signal. Does nothing if no
 * signal was reported. The last of all answers raises the signal in the calling thread, and returns if the process
 * goes on.
 * Errors: VALUE if no watch has this number. [any-thread] */
YOKE_API yoke_status yoke_preempt_resume(int64_t id);

/* Answers the signal without a resume: this watch does not ask for a new raise. Errors: VALUE if no watch has this
 * number. [any-thread] */
YOKE_API yoke_status yoke_preempt_clear(int64_t id);

/* Ends a watch. An unanswered signal counts as resumed, so that no signal is lost. If no other watch has a signal,
 * the former disposition is put back; a handler installed by other code since then stays.
 * Errors: VALUE if no watch has this number. [any-thread] */
YOKE_API yoke_status yoke_preempt_unwatch(int64_t id);

#ifdef __cplusplus
}
#endif
#endif /* YOKE_PREEMPT_H */
