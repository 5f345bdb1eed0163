// onednn_signals.h: signals wait while a thread is inside oneDNN, on the processors where a handler would spoil memory.
//
// libdnnl 2.6 (Debian 12) multiplies floats on AVX and AVX2 with the stack pointer in a workspace from malloc(). The
// kernel then writes a handler's frame below the workspace, into memory of others. An alternative stack would protect
// only against handlers that ask for one (SA_ONSTACK).
#pragma once

#include <signal.h>

namespace yoke::cpu {

// Scope in which the calling thread's asynchronous signals are blocked. The signals arrive at the end of the scope.
// Signals to the process may go to another thread meanwhile.
class HeldSignals {
public:
    HeldSignals();
    ~HeldSignals();
    HeldSignals(const HeldSignals &) = delete;
    HeldSignals &operator=(const HeldSignals &) = delete;

private:
    bool held_;
    sigset_t before_;
};

}  // namespace yoke::cpu
