#include "core/launch/taken_signals.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"

#include <unistd.h>

#include <atomic>
#include <ctime>
#include <mutex>

namespace yoke {

namespace {

constexpr size_t kCount = std::size(kTakenSignals);

std::atomic<uint32_t> came[kCount];

struct TakenState {
    Mutex mutex{LockRank::kOther};
    int users = 0;
    struct sigaction former[kCount];
    bool is_taken[kCount];
    uint32_t at_first[kCount];  // `came`, at the start of the first user
};
TakenState &taken = immortal<TakenState>();

extern "C" void count_signal(int signal)
{
    for (size_t i = 0; i < kCount; ++i)
        if (kTakenSignals[i] == signal) came[i].fetch_add(1);
}

void take_all()
{
    for (size_t i = 0; i < kCount; ++i) {
        taken.at_first[i] = came[i].load();
        sigaction(kTakenSignals[i], nullptr, &taken.former[i]);
        const bool has_info = taken.former[i].sa_flags & SA_SIGINFO;
        taken.is_taken[i] = has_info || taken.former[i].sa_handler != SIG_IGN;
        if (!taken.is_taken[i]) continue;
        struct sigaction ours = {};
        ours.sa_handler = count_signal;  // waits end at once: no SA_RESTART
        ours.sa_flags = SA_ONSTACK;      // threads of host programs may have small stacks
        sigfillset(&ours.sa_mask);
        sigaction(kTakenSignals[i], &ours, nullptr);
    }
}

// Returns whether to raise the signal again for the host program after the last run. A stop takes effect when the
// signal comes, and so does its end.
bool is_raised_anew(int signal)
{
    return signal != SIGTSTP && signal != SIGCONT;
}

void give_back_all()
{
    for (size_t i = 0; i < kCount; ++i)
        if (taken.is_taken[i]) sigaction(kTakenSignals[i], &taken.former[i], nullptr);
    for (size_t i = 0; i < kCount; ++i)
        if (came[i].load() != taken.at_first[i] && is_raised_anew(kTakenSignals[i]))
            kill(getpid(), kTakenSignals[i]);
}

bool is_pipe_signal_pending()
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGPIPE);
}

sigset_t pipe_signal()
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGPIPE);
    return set;
}

}  // namespace

TakenSignals::TakenSignals() : had_pipe_signal_(is_pipe_signal_pending())
{
    const sigset_t broken = pipe_signal();
    pthread_sigmask(SIG_BLOCK, &broken, &before_);
    const std::lock_guard lock(taken.mutex);
    if (taken.users++ == 0) take_all();
    for (size_t i = 0; i < kCount; ++i) seen_[i] = came[i].load();
}

TakenSignals::~TakenSignals()
{
    {
        const std::lock_guard lock(taken.mutex);
        if (--taken.users == 0) give_back_all();
    }
    const sigset_t broken = pipe_signal();
    const timespec at_once{};
    if (!had_pipe_signal_ && is_pipe_signal_pending()) sigtimedwait(&broken, nullptr, &at_once);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

int TakenSignals::next() noexcept
{
    for (size_t i = 0; i < kCount; ++i)
        if (seen_[i] != came[i].load()) {
            ++seen_[i];
            return kTakenSignals[i];
        }
    return 0;
}

}  // namespace yoke
