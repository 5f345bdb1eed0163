// start.h: all ranks of this node from their start to the end of the last one.
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

// What one start after the other is made with.
struct RunScene {
    const RunOptions &options;
    RunPlace place;
    std::string folder;  // of the error files
    std::string input;   // the file that each rank reads as its standard input; "": none
    rlim_t files = 0;    // most open files of a rank
    Guard &guard;
    TakenSignals &signals;
    Terminal &terminal;
    LineSink &out, &err;
};

class Start {
public:
    Start(RunScene &scene, int32_t number);
    // Of the first rank that failed, when all have ended and what they wrote is on its way.
    RunResult run();
    // The program was asked to end: no other start follows.
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
    std::vector<std::function<void()>> answers_;  // to what poll() was asked
    RunResult result_;
    bool is_output_lost_ = false;
    bool was_interrupted_ = false, is_asked_to_end_ = false, is_killed_ = false;
    int interrupts_ = 0;                 // INT and TERM that came
    Deadline end_ = Deadline::after(0);  // once they are asked to end
    std::optional<AwaitedDumps> dumps_;  // before they are asked
};

}  // namespace yoke
