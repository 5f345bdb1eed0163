// terminal.h: terminal input, passed on to rank 0.
//
// Ranks have process groups of their own, so they may not read from a terminal. The launcher, while in the terminal's
// foreground, reads for rank 0. If standard input is no terminal, rank 0 reads directly.
#pragma once

#include "core/launch/child.h"

namespace yoke {

class Terminal {
public:
    // Returns the descriptor for the rank's standard input: a new pipe if standard input is a terminal, else standard
    // input itself.
    int open();
    void rank_has_it() { pipe_.read.close(); }

    // Returns the file for poll() to wait for: reads_from() to read input, writes_to() to write waiting bytes. Both
    // return -1 if there is no such file now.
    int reads_from() const noexcept;
    int writes_to() const noexcept;
    void pass_on();

private:
    Pipe pipe_;
    std::string waiting_;
};

}  // namespace yoke
