/* Watched signals in the surroundings of a host program: handlers, threads, and forked children. */
#define _GNU_SOURCE
#include "preempt.h"

/* ---- Handlers of its own ----------------------------------------------------------------------------------------- */

static void give_to_a_handler(void)
{
    install(SIGTERM, 0);
    watch("TERM");
    raise(SIGTERM);
    raise(SIGTERM);
    CHECK(heard == 0);
    CHECK(yoke_preempted() == SIGTERM);
    raise(SIGTERM); /* an impatient operator, while the program saves */
    CHECK(yoke_preempted() == SIGTERM);
    raise(SIGTERM); /* after its last look */
    OK(yoke_preempt_resume(0));
    CHECK(heard == 1 && heard_pid && heard_blocked);
    CHECK(yoke_preempted() == 0);
    raise(SIGTERM);
    CHECK(heard == 1 && yoke_preempted() == SIGTERM);
    OK(yoke_preempt_unwatch(0));
    CHECK(heard == 2);
    const struct sigaction restored = now(SIGTERM);
    CHECK(restored.sa_sigaction == on_info && sigismember(&restored.sa_mask, SIGUSR2));
}

static void a_handler_of_the_host_gets_it_once_with_its_own_flags(void)
{
    passes(give_to_a_handler);
}

static void give_to_a_handler_that_goes(void)
{
    install(SIGTERM, SA_RESETHAND);
    watch("TERM");
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
    OK(yoke_preempt_resume(0));
    CHECK(heard == 1);
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
    must_have_passed();
    yoke_preempt_resume(0);
    _exit(kWentOn);
}

static void what_the_handler_leaves_behind_is_who_gets_the_next_one(void)
{
    dies_of(SIGTERM, give_to_a_handler_that_goes);
}

static struct sigaction below; /* earlier action, from install_above */
static volatile sig_atomic_t above;

static void on_above(int signal)
{
    ++above;
    below.sa_handler(signal);
}

static void install_above(void)
{
    struct sigaction action = {0};
    action.sa_handler = on_above;
    sigaction(SIGTERM, &action, &below);
}

static void stand_below_a_handler(void)
{
    install(SIGTERM, 0);
    watch("TERM");
    install_above();
    raise(SIGTERM);
    CHECK(above == 1 && yoke_preempted() == SIGTERM);
    OK(yoke_preempt_resume(0));
    CHECK(above == 1 && heard == 1); /* the handler has got the signal */
    CHECK(now(SIGTERM).sa_handler == on_above);
    OK(yoke_preempt_unwatch(0));
    CHECK(now(SIGTERM).sa_handler == on_above);
    raise(SIGTERM); /* passes through */
    CHECK(above == 2 && heard == 2 && yoke_preempted() == 0);
}

static void a_handler_that_was_installed_later_stays(void)
{
    passes(stand_below_a_handler);
}

static void stand_above_and_below(void)
{
    watch("TERM");
    install_above();
    OK(yoke_preempt_unwatch(0));
    watch("TERM"); /* the former handler now calls Yoke's */
    raise(SIGTERM);
    CHECK(above == 0 && yoke_preempted() == SIGTERM);
    OK(yoke_preempt_resume(0));
    CHECK(above == 1 && yoke_preempted() == 0);
}

static void a_handler_that_calls_the_one_it_found_makes_no_circle(void)
{
    passes(stand_above_and_below);
}

/* ---- Threads and forks ------------------------------------------------------------------------------------------- */

static void *watch_in_thread(void *unused)
{
    (void)unused;
    watch("TERM");
    return NULL;
}

static void *resume_in_thread(void *unused)
{
    (void)unused;
    CHECK(yoke_preempted() == SIGTERM);
    must_have_passed();
    yoke_preempt_resume(0);
    return NULL;
}

static void use_threads(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, watch_in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    kill(getpid(), SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
    CHECK(pthread_create(&thread, NULL, resume_in_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    _exit(kWentOn);
}

static void threads_may_watch_and_answer(void)
{
    dies_of(SIGTERM, use_threads);
}

static int64_t parents_id;

static void look_in_the_child(void)
{
    CHECK(yoke_preempted() == 0 && yoke_preempt_signal(parents_id) == 0);
    CHECK(now(SIGTERM).sa_handler == SIG_DFL);
    FAILS(yoke_preempt_unwatch(parents_id), YOKE_E_VALUE, "a watch that this process added");
    watch("TERM");
    CHECK(yoke_preempted() == 0);
    raise(SIGTERM);
    CHECK(yoke_preempted() == SIGTERM);
}

static void raise_in_the_child(void)
{
    raise(SIGTERM);
    _exit(kWentOn);
}

static void fork_children(void)
{
    OK(yoke_preempt_watch(NULL, 0));
    OK(yoke_preempt_add(NULL, 0, &parents_id));
    dies_of(SIGTERM, raise_in_the_child);
    raise(SIGTERM);
    passes(look_in_the_child); /* before any query in the parent */
    CHECK(yoke_preempted() == SIGTERM);
    passes(look_in_the_child);
    CHECK(yoke_preempted() == SIGTERM && yoke_preempt_signal(parents_id) == SIGTERM);
}

static void a_forked_child_watches_nothing_and_was_told_nothing(void)
{
    passes(fork_children);
}

static void raise_below_in_the_child(void)
{
    raise(SIGTERM);
    CHECK(above == 1 && heard == 1 && yoke_preempted() == 0);
}

static void fork_below_a_handler(void)
{
    install(SIGTERM, 0);
    watch("TERM");
    install_above();
    passes(raise_below_in_the_child);
}

static void in_a_child_a_handler_that_was_installed_later_reaches_the_former_one(void)
{
    passes(fork_below_a_handler);
}

static int raises_at_once;

static void raise_at_once(void)
{
    if (raises_at_once) raise(SIGTERM);
}

/* Before any library has started, so that a child comes here before the library hears of the fork. */
static void hear_of_forks_first(void)
{
    pthread_atfork(NULL, NULL, raise_at_once);
}
__attribute__((section(".preinit_array"),
               used)) static void (*const kFirst)(void) = hear_of_forks_first;

static void go_on(void)
{
    _exit(kWentOn);
}

static void fork_under_fire(void)
{
    OK(yoke_preempt_watch(NULL, 0));
    raises_at_once = 1;
    dies_of(SIGTERM, go_on);
    raises_at_once = 0;
    CHECK(yoke_preempted() == 0);
}

static void a_signal_to_a_child_that_was_just_made_is_not_lost(void)
{
    passes(fork_under_fire);
}

int main(void)
{
    RUN(a_handler_of_the_host_gets_it_once_with_its_own_flags);
    RUN(what_the_handler_leaves_behind_is_who_gets_the_next_one);
    RUN(a_handler_that_was_installed_later_stays);
    RUN(a_handler_that_calls_the_one_it_found_makes_no_circle);
    RUN(threads_may_watch_and_answer);
    RUN(a_forked_child_watches_nothing_and_was_told_nothing);
    RUN(in_a_child_a_handler_that_was_installed_later_reaches_the_former_one);
    RUN(a_signal_to_a_child_that_was_just_made_is_not_lost);
    return report();
}
