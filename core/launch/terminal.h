// terminal.h: terminal input, passed on to rank 0.
//
// Ranks have process groups of their own, so they may not read from a terminal. The launcher, while in the terminal's
// foreground, reads for rank 0. If standard input is no terminal, rank 0 reads directly.
#pragma once

#include "core/launch/child.h"

namespace yoke {

class Terminal {
public:
    // Returns the descriptor for the rank's standard input.
    int open();
    void rank_has_it() { pipe_.read.close(); }

    // Returns the file for poll() to wait for: reads_from() for input, writes_to() if bytes wait; -1: no file now.
    int reads_from() const noexcept;
    int writes_to() const noexcept;
    void pass_on();

private:
    Pipe pipe_;
    std::string waiting_;
};

}  // namespace yoke
