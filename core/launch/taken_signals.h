// taken_signals.h: signals passed on to the ranks during a run.
//
// A handler counts signals that end, stop or ask a program. It replaces the host program's handler. After the last
// run of the process the former dispositions return, and signals counted meanwhile are raised again, so the host
// program gets them too. Signals ignored by the host program stay ignored. SIGPIPE is held back from the calling
// thread.
#pragma once

#include <signal.h>

#include <array>
#include <cstdint>

namespace yoke {

inline constexpr int kTakenSignals[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,
                                        SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT};

class TakenSignals {
public:
    TakenSignals();
    ~TakenSignals();
    TakenSignals(const TakenSignals &) = delete;
    TakenSignals &operator=(const TakenSignals &) = delete;

    // Returns a signal that came and was not returned yet; 0: no signal.
    int next() noexcept;

private:
    std::array<uint32_t, std::size(kTakenSignals)> seen_;
    sigset_t before_;
    bool had_pipe_signal_ = false;
};

}  // namespace yoke
