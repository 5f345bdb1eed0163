// taken_signals.h: signals that go on to the ranks while there are any.
//
// Those that end, stop or ask a program are counted by a handler in place of the host's. With the last run of the
// process the former dispositions come back, and what has come meanwhile is raised anew: so the host hears of it too.
// What the host ignores stays ignored. SIGPIPE is held back from the calling thread.
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

    // One that has come and was not told yet; 0: none.
    int next() noexcept;

private:
    std::array<uint32_t, std::size(kTakenSignals)> seen_;
    sigset_t before_;
    bool had_pipe_signal_ = false;
};

}  // namespace yoke
