// signals.h: threads of the library's own take no signal of the host program's.
#pragma once

#include <pthread.h>
#include <signal.h>

namespace yoke {

// Scope in which new threads start with all signals blocked, except the signals of their own faults.
class HostSignalsBlocked {
public:
    HostSignalsBlocked()
    {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS})
            sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~HostSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    HostSignalsBlocked(const HostSignalsBlocked &) = delete;
    HostSignalsBlocked &operator=(const HostSignalsBlocked &) = delete;

private:
    sigset_t before_;
};

}  // namespace yoke
