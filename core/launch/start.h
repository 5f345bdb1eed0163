// start.h: all ranks of this node, from their start to the end of the last rank.
#pragma once

#include "core/base/deadline.h"
#include "core/launch/awaited_dumps.h"
#include "core/launch/guard.h"
#include "core/launch/rank.h"
#include "core/launch/taken_signals.h"
#include "core/launch/terminal.h"
#include "core/launch/variables.h"

#include <poll.h>

#include <deque>
#include <functional>
#include <optional>

namespace yoke {

// Parts of a run that successive starts share.
struct RunScene {
    const RunOptions &options;
    RunPlace place;
    std::string folder;  // folder of error files
    std::string input;   // path of each rank's standard input; "": no file
    rlim_t files = 0;    // most open files of a rank
    Guard &guard;
    TakenSignals &signals;
    Terminal &terminal;
    LineSink &out, &err;
};

class Start {
public:
    Start(RunScene &scene, int32_t number);
    // Starts the ranks. Returns the result of the first failed rank, after all ranks have ended and their output is
    // passed on.
    RunResult run();
    // Returns whether a signal or the host program asked this program to end, so no other start follows.
    bool was_interrupted() const noexcept { return was_interrupted_; }

private:
    void start_all();
    int input_of(int32_t number, OwnedFile &own);
    bool start_rank(int32_t local_rank);
    bool is_any_left() const;
    void step();
    void ask(std::vector<pollfd> &all, int fd, short events, std::function<void()> then);
    void look_at_ranks();
    void look_at_output();
    void choose_first(const std::vector<Rank *> &failed);
    void hear(int signal);
    void end_after_dumps();
    void look_at_dumps();
    void end_all();
    void end_by_host();
    void kill_all();
    void release_ended();
    void drain();
    double patience() const;

    RunScene &scene_;
    const int32_t number_;
    std::deque<Rank> ranks_;
    std::vector<std::function<void()>> answers_;  // handlers, by entry of poll()
    RunResult result_;
    bool is_output_lost_ = false;
    bool was_interrupted_ = false, is_asked_to_end_ = false, is_killed_ = false;
    int interrupts_ = 0;                 // count of INT and TERM
    Deadline end_ = Deadline::after(0);  // valid after the request to end
    std::optional<AwaitedDumps> dumps_;  // valid before the request to end
};

}  // namespace yoke
