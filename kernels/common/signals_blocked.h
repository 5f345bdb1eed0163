// Signals of the host program, blocked in a module's own threads.
//
// Contract: compiled in the baseline instruction set.
#pragma once

#include <pthread.h>
#include <signal.h>

#include <initializer_list>

namespace yoke::kernels {

// Returns all signals but those of a thread's own faults. A fault cannot wait: the system would end the process in
// place of the handler.
inline sigset_t signals_but_faults()
{
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
        sigdelset(&all, fault);
    return all;
}

// Scope with these signals blocked. A thread made in this scope inherits the mask.
class SignalsBlocked {
public:
    SignalsBlocked()
    {
        const sigset_t all = signals_but_faults();
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
    sigset_t before_;
};

}  // namespace yoke::kernels
