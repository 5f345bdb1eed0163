/* Watched signals from C: the watches that get a signal, and the effects of answers. */
#define _GNU_SOURCE
#include "preempt.h"

#include <errno.h>

/* ---- A single watch ---------------------------------------------------------------------------------------------- */

static void wait_and_resume(void)
{
    OK(yoke_preempt_watch(NULL, 0));
    CHECK(yoke_preempted() == 0);
    errno = 77;
    raise(SIGTERM);
    CHECK(errno == 77);
    CHECK(yoke_preempted() == SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
    must_have_passed();
    yoke_preempt_resume(0);
    _exit(kWentOn);
}

static void a_signal_is_told_until_it_is_answered_and_then_ends_the_process(void)
{
    dies_of(SIGTERM, wait_and_resume);
}

static void resume_what_was_ignored(void)
{
    signal(SIGHUP, SIG_IGN);
    watch("HUP");
    for (int i = 0; i < 2; ++i) {
        raise(SIGHUP);
        CHECK(yoke_preempted() == SIGHUP);
        OK(yoke_preempt_resume(0));
        CHECK(yoke_preempted() == 0);
    }
    OK(yoke_preempt_unwatch(0));
    CHECK(now(SIGHUP).sa_handler == SIG_IGN);
}

static void an_ignored_signal_is_told_and_then_ignored(void)
{
    passes(resume_what_was_ignored);
}

static void clear_it(void)
{
    watch("TERM");
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
    OK(yoke_preempt_clear(0));
    CHECK(yoke_preempted() == 0);
    OK(yoke_preempt_resume(0)); /* no signal to answer */
    OK(yoke_preempt_unwatch(0));
    CHECK(now(SIGTERM).sa_handler == SIG_DFL);
}

static void a_cleared_signal_has_no_effect(void)
{
    passes(clear_it);
}

static void unwatch_unanswered(void)
{
    watch("USR1");
    raise(SIGUSR1);
    must_have_passed();
    yoke_preempt_unwatch(0);
    _exit(kWentOn);
}

static void a_signal_that_nobody_answered_is_not_lost_when_the_watch_ends(void)
{
    dies_of(SIGUSR1, unwatch_unanswered);
}

static void resume_while_it_is_blocked(void)
{
    sigset_t term;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    watch("TERM");
    raise(SIGTERM);
    pthread_sigmask(SIG_BLOCK, &term, NULL);
    CHECK(yoke_preempted() == SIGTERM);
    must_have_passed();
    yoke_preempt_resume(0);
    _exit(kWentOn);
}

static void a_thread_that_blocks_the_signal_can_give_it_on(void)
{
    dies_of(SIGTERM, resume_while_it_is_blocked);
}

static void look_at_the_handler(void)
{
    watch("TERM");
    CHECK((now(SIGTERM).sa_flags & (SA_RESTART | SA_ONSTACK | SA_SIGINFO)) ==
          (SA_RESTART | SA_ONSTACK));
    OK(yoke_shutdown(5));
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
}

static void the_handler_restarts_system_calls_and_outlives_a_shutdown(void)
{
    passes(look_at_the_handler);
}

static void watch_several(void)
{
    const char *signals[] = {"SIGUSR1", "SIGUSR2"};
    signal(SIGUSR1, SIG_IGN);
    signal(SIGUSR2, SIG_IGN);
    OK(yoke_preempt_watch(signals, 2));
    watch("TERM"); /* adds a signal */
    raise(SIGUSR2);
    CHECK(yoke_preempted() == SIGUSR2);
    raise(SIGUSR1);
    CHECK(yoke_preempted() == SIGUSR2); /* until it is answered */
    OK(yoke_preempt_resume(0));
    CHECK(yoke_preempted() == SIGUSR1);
    OK(yoke_preempt_resume(0));
    CHECK(yoke_preempted() == 0);
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
}

static void several_signals_are_told_one_by_one(void)
{
    passes(watch_several);
}

/* ---- Several watches --------------------------------------------------------------------------------------------- */

static void answer_in_turn(void)
{
    int64_t first = 0, second = 0;
    install(SIGTERM, 0);
    OK(yoke_preempt_watch(NULL, 0));
    OK(yoke_preempt_add(NULL, 0, &first));
    OK(yoke_preempt_add(NULL, 0, &second));
    CHECK(first >= 1 && second > first);
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM && yoke_preempt_signal(first) == SIGTERM);
    OK(yoke_preempt_resume(0));
    CHECK(yoke_preempted() == 0);
    raise(SIGTERM); /* again, before the other watches have answered */
    CHECK(yoke_preempted() == 0 && yoke_preempt_signal(first) == SIGTERM);
    OK(yoke_preempt_clear(first));
    CHECK(heard == 0 && yoke_preempt_signal(second) == SIGTERM);
    OK(yoke_preempt_clear(second));
    CHECK(heard == 1); /* resumed by a single watch of three */

    raise(SIGTERM);
    CHECK(yoke_preempted() && yoke_preempt_signal(first) && yoke_preempt_signal(second));
    OK(yoke_preempt_clear(0));
    OK(yoke_preempt_clear(second));
    OK(yoke_preempt_clear(first));
    CHECK(heard == 1 && yoke_preempted() == 0);
}

static void the_last_of_several_to_answer_gives_it_on(void)
{
    passes(answer_in_turn);
}

static void end_one_of_two(void)
{
    int64_t id = 0;
    install(SIGTERM, 0);
    OK(yoke_preempt_watch(NULL, 0));
    OK(yoke_preempt_add(NULL, 0, &id));
    raise(SIGTERM);
    OK(yoke_preempt_unwatch(id));
    CHECK(heard == 0 && yoke_preempt_signal(id) == 0 && yoke_preempted() == SIGTERM);
    OK(yoke_preempt_clear(0));
    CHECK(heard == 1); /* the ended watch has not answered */
    FAILS(yoke_preempt_resume(id), YOKE_E_VALUE, "preempt_resume: argument 'id' is");
    OK(yoke_preempt_add(NULL, 0, &id));
    OK(yoke_preempt_unwatch(0));
    raise(SIGTERM);
    CHECK(heard == 1 && yoke_preempted() == 0 && yoke_preempt_signal(id) == SIGTERM);
}

static void a_watch_that_ends_leaves_the_others(void)
{
    passes(end_one_of_two);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static void give_bad_names(void)
{
    static const char *const unknown[] = {"TERM", "TREM"}, *const kill[] = {"SIGKILL"};
    static const char *const fault[] = {"SEGV"}, *const child[] = {"CHLD"}, *const null[] = {NULL};
    static const char kServe[] =
        "use one of TERM, INT, HUP, QUIT, USR1, USR2, ALRM, XCPU, TSTP, PWR";
    int64_t id = 5;
    FAILS(yoke_preempt_watch(unknown, 2), YOKE_E_VALUE, "preempt_watch: 'TREM' is not a signal");
    CHECK(strstr(yoke_last_error()->message, kServe) != NULL);
    CHECK(now(SIGTERM).sa_handler == SIG_DFL); /* all or nothing */
    FAILS(yoke_preempt_watch(kill, 1), YOKE_E_VALUE, "signal 'SIGKILL'");
    CHECK(strstr(yoke_last_error()->message, kServe) != NULL);
    FAILS(yoke_preempt_watch(fault, 1), YOKE_E_VALUE, "signal 'SEGV' reports a fault");
    CHECK(strstr(yoke_last_error()->message, kServe) != NULL);
    FAILS(yoke_preempt_add(child, 1, &id), YOKE_E_VALUE, "on_preempt: 'CHLD' is not a signal");
    CHECK(id == 5);
    FAILS(yoke_preempt_watch(null, 1), YOKE_E_VALUE, "item 0 of argument 'signals' is NULL");
    FAILS(yoke_preempt_watch(unknown, -1), YOKE_E_VALUE, "count of argument 'signals' is -1");
    FAILS(yoke_preempt_watch(NULL, 2), YOKE_E_VALUE, "'signals' is NULL, but its count is 2");
    FAILS(yoke_preempt_add(unknown, 1, NULL), YOKE_E_VALUE, "argument 'id' is NULL");
    FAILS(yoke_preempt_unwatch(0), YOKE_E_VALUE, "argument 'id' is 0");
    CHECK(yoke_preempt_number("TERM") == SIGTERM && yoke_preempt_number("SIGUSR2") == SIGUSR2);
    CHECK(yoke_preempt_number("term") == 0);
    FAILS(yoke_last_error()->status, YOKE_E_VALUE, "on_preempt: 'term' is not a signal");
}

static void names_that_do_not_serve_are_refused_with_those_that_do(void)
{
    passes(give_bad_names);
}

int main(void)
{
    RUN(a_signal_is_told_until_it_is_answered_and_then_ends_the_process);
    RUN(an_ignored_signal_is_told_and_then_ignored);
    RUN(a_cleared_signal_has_no_effect);
    RUN(a_signal_that_nobody_answered_is_not_lost_when_the_watch_ends);
    RUN(a_thread_that_blocks_the_signal_can_give_it_on);
    RUN(the_handler_restarts_system_calls_and_outlives_a_shutdown);
    RUN(several_signals_are_told_one_by_one);
    RUN(the_last_of_several_to_answer_gives_it_on);
    RUN(a_watch_that_ends_leaves_the_others);
    RUN(names_that_do_not_serve_are_refused_with_those_that_do);
    return report();
}
