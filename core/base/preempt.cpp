#include "core/base/preempt.h"

#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/text.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

namespace {

struct Name {
    std::string_view text;
    int number;
};

constexpr Name kServing[] = {
    {"TERM", SIGTERM}, {"INT", SIGINT},   {"HUP", SIGHUP},   {"QUIT", SIGQUIT}, {"USR1", SIGUSR1},
    {"USR2", SIGUSR2}, {"ALRM", SIGALRM}, {"XCPU", SIGXCPU}, {"TSTP", SIGTSTP},
#ifdef SIGPWR
    {"PWR", SIGPWR},
#endif
};
constexpr std::string_view kUncatchable[] = {"KILL", "STOP"};
constexpr std::string_view kFaults[] = {"SEGV", "BUS", "FPE", "ILL", "ABRT", "TRAP", "SYS"};

struct SignalWatch {
    int64_t id;
    SignalSet signals;
    SignalSet told = 0;  // came, and is not answered yet
    int current = 0;     // latest of these signals
};

struct Preemption {
    Mutex mutex{LockRank::kOther};
    std::vector<SignalWatch> watches;
    int64_t last_id = kProgramWatch;
    SignalSet resumed = 0;  // an answer asked to give it on
    std::array<struct sigaction, 8 * sizeof(SignalSet) + 1> former{};  // as it was found
};
Preemption &preemption = immortal<Preemption>();

// State read and written by the handler.
std::atomic<SignalSet> watched{0};
std::atomic<SignalSet> came{0};    // noted, and not handed to any watch yet
std::atomic<SignalSet> giving{0};  // is being given on
std::atomic<SignalSet> early{0};   // came to a forked child before forget_signals_in_child
std::atomic<pid_t> owner{0};       // the process that watches
static_assert(std::atomic<SignalSet>::is_always_lock_free &&
              std::atomic<pid_t>::is_always_lock_free);

// Union of `told` of all watches, so that told_signal() takes no lock if no signal came.
std::atomic<SignalSet> open{0};

template <class Body>
void for_each(SignalSet signals, Body &&body)
{
    for (; signals; signals &= signals - 1) body(std::countr_zero(signals) + 1);
}

extern "C" void note_signal(int signal);

bool is_ours(const struct sigaction &action)
{
    return !(action.sa_flags & SA_SIGINFO) && action.sa_handler == note_signal;
}

bool is_same(const struct sigaction &a, const struct sigaction &b)
{
    const int flag = SA_SIGINFO;
    if ((a.sa_flags & flag) != (b.sa_flags & flag)) return false;
    return a.sa_flags & flag ? a.sa_sigaction == b.sa_sigaction : a.sa_handler == b.sa_handler;
}

// Raises a signal in this thread; the thread takes the signal before this function returns.
void raise_now(int signal)
{
    sigset_t only, before;
    sigemptyset(&only);
    sigaddset(&only, signal);
    pthread_sigmask(SIG_UNBLOCK, &only, &before);
    raise(signal);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Raises a signal under a disposition, then restores the present disposition, also a foreign handler. Returns the
// former disposition as left by its handler: a handler may have removed (SA_RESETHAND) or replaced itself. A handler
// may do anything, so no lock is held. Safe in a signal handler.
struct sigaction give_on(int signal, const struct sigaction &former)
{
    struct sigaction present, after = former;
    giving.fetch_or(set_of(signal));
    sigaction(signal, nullptr, &present);
    const bool stands_above = !is_same(present, former);
    if (stands_above) sigaction(signal, &former, nullptr);
    raise_now(signal);
    if (stands_above) sigaction(signal, &present, &after);
    giving.fetch_and(~set_of(signal));
    return after;
}

extern "C" void note_signal(int signal)
{
    const int kept = errno;
    const SignalSet bit = set_of(signal);
    if (giving.load() & bit) {
        // A handler installed above this handler got the signal, and calls this handler as its predecessor.
    } else if (getpid() != owner.load()) {
        early.fetch_or(bit);
    } else {
        came.fetch_or(bit);
        // No watch is left, but a handler above still calls this handler. Either this code or end_watch takes the
        // note.
        if (!(watched.load() & bit) && (came.fetch_and(~bit) & bit))
            give_on(signal, preemption.former[static_cast<size_t>(signal)]);
    }
    errno = kept;
}

// Installs the handler of a signal and keeps the former disposition. This function and the functions below need the
// lock, except in a forked child.
void take_over(int signal)
{
    struct sigaction present, ours = {};
    sigaction(signal, nullptr, &present);
    if (is_ours(present)) return;
    preemption.former[static_cast<size_t>(signal)] = present;
    ours.sa_handler = note_signal;
    // SA_ONSTACK: hosts such as Go have threads whose stacks are too small for a handler.
    ours.sa_flags = SA_RESTART | SA_ONSTACK;
    sigemptyset(&ours.sa_mask);
    giving.fetch_and(~set_of(signal));  // left by a handler that jumped out
    sigaction(signal, &ours, nullptr);
}

void put_back(int signal)
{
    struct sigaction present;
    sigaction(signal, nullptr, &present);
    if (is_ours(present))
        sigaction(signal, &preemption.former[static_cast<size_t>(signal)], nullptr);
}

// Ends all watches in a forked child and restores the former dispositions. Then raises again the signals that came in
// the child while the parent's handlers were still installed.
void forget_signals_in_child()
{
    for_each(watched.exchange(0), put_back);
    owner.store(getpid());
    preemption.watches.clear();
    preemption.resumed = 0;
    came.store(0);
    open.store(0);
    giving.store(0);
    for_each(early.exchange(0), raise_now);
}
// Registered after `preemption`, so the child runs the hook when the locks of the core are free.
const int forks_are_heard = pthread_atfork(nullptr, nullptr, forget_signals_in_child);

SignalWatch *find_watch(int64_t id)
{
    const auto found = std::find_if(preemption.watches.begin(), preemption.watches.end(),
                                    [id](const SignalWatch &each) { return each.id == id; });
    return found == preemption.watches.end() ? nullptr : &*found;
}

void watch(SignalSet signals)
{
    owner.store(getpid());
    watched.fetch_or(signals);
    for_each(signals, take_over);
}

// Hands noted signals to the watches for them. A signal still unanswered by some watch is not handed out again.
void hand_out()
{
    const SignalSet fresh = came.exchange(0) & ~open.load();
    for (SignalWatch &watch : preemption.watches) watch.told |= fresh & watch.signals;
    open.fetch_or(fresh);
}

// Closes those answered signals that no watch still has to answer. Returns the closed signals that some watch asked
// to give on.
SignalSet close_answered(SignalSet answered)
{
    for (const SignalWatch &watch : preemption.watches) answered &= ~watch.told;
    open.fetch_and(~answered);
    came.fetch_and(~answered);
    const SignalSet due = answered & preemption.resumed;
    preemption.resumed &= ~answered;
    return due;
}

// Gives signals to their former dispositions. Called without the lock, since a handler may do anything.
void give_all_on(SignalSet due)
{
    for_each(due, [](int signal) {
        struct sigaction former;
        {
            const std::lock_guard lock(preemption.mutex);
            former = preemption.former[static_cast<size_t>(signal)];
        }
        const struct sigaction after = give_on(signal, former);
        const std::lock_guard lock(preemption.mutex);
        if (!is_ours(after)) preemption.former[static_cast<size_t>(signal)] = after;
    });
}

void check_forks()
{
    if (forks_are_heard != 0)
        fail(YOKE_E_OOM,
             "the process had no memory to register a fork handler, which watched signals need");
}

}  // namespace

int signal_number(const char *name, const char *call)
{
    std::string_view text = name;
    if (text.substr(0, 3) == "SIG") text.remove_prefix(3);
    std::string serving;
    for (const Name &each : kServing) {
        if (each.text == text) return each.number;
        add_part(serving, each.text);
    }
    const auto is_text = [text](std::string_view each) { return each == text; };
    if (std::any_of(std::begin(kUncatchable), std::end(kUncatchable), is_text))
        fail(YOKE_E_VALUE, "%s: no program can catch signal '%s'; use one of %s", call, name,
             serving.c_str());
    if (std::any_of(std::begin(kFaults), std::end(kFaults), is_text))
        fail(YOKE_E_VALUE,
             "%s: signal '%s' reports a fault, after which nothing can be saved; use one of %s",
             call, name, serving.c_str());
    fail(YOKE_E_VALUE, "%s: '%s' is not a signal that asks a program to end; use one of %s", call,
         name, serving.c_str());
}

void watch_for_program(SignalSet signals)
{
    check_forks();
    const std::lock_guard lock(preemption.mutex);
    if (SignalWatch *own = find_watch(kProgramWatch))
        own->signals |= signals;
    else
        preemption.watches.push_back({.id = kProgramWatch, .signals = signals});
    watch(signals);
}

int64_t add_watch(SignalSet signals)
{
    check_forks();
    const std::lock_guard lock(preemption.mutex);
    preemption.watches.push_back({.id = preemption.last_id + 1, .signals = signals});
    watch(signals);
    return ++preemption.last_id;
}

int told_signal(int64_t id)
{
    if (!(came.load() | open.load())) return 0;
    const std::lock_guard lock(preemption.mutex);
    hand_out();
    SignalWatch *found = find_watch(id);
    if (!found) return 0;
    if (!found->current && found->told) found->current = std::countr_zero(found->told) + 1;
    return found->current;
}

bool answer_signal(int64_t id, Answer answer)
{
    SignalSet due = 0;
    {
        const std::lock_guard lock(preemption.mutex);
        SignalWatch *found = find_watch(id);
        if (!found) return false;
        if (found->current) {
            const SignalSet answered = set_of(found->current);
            found->told &= ~answered;
            found->current = 0;
            if (answer == Answer::kResume) preemption.resumed |= answered;
            due = close_answered(answered);
        }
    }
    give_all_on(due);
    return true;
}

bool end_watch(int64_t id)
{
    SignalSet due = 0;
    {
        const std::lock_guard lock(preemption.mutex);
        hand_out();
        SignalWatch *found = find_watch(id);
        if (!found) return false;
        const SignalWatch ended = *found;
        preemption.watches.erase(preemption.watches.begin() + (found - preemption.watches.data()));
        SignalSet gone = ended.signals;
        for (const SignalWatch &other : preemption.watches) gone &= ~other.signals;
        watched.fetch_and(~gone);
        for_each(gone, put_back);
        preemption.resumed |= ended.told;
        due = close_answered(ended.told);
        due |= came.fetch_and(~gone) & gone;  // after hand_out
    }
    give_all_on(due);
    return true;
}

}  // namespace yoke
