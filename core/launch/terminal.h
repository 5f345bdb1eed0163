// terminal.h: what people type, handed on to rank 0.
//
// Ranks have process groups of their own, which may not read from a terminal; so whoever stands in its foreground reads
// it for them. What is no terminal a rank reads itself.
#pragma once

#include "core/launch/child.h"

namespace yoke {

class Terminal {
public:
    // The descriptor that a rank gets as its standard input.
    int open();
    void rank_has_it() { pipe_.read.close(); }

    // The file to ask poll() about for reading, or writing where something waits; -1: none now.
    int reads_from() const noexcept;
    int writes_to() const noexcept;
    void pass_on();

private:
    Pipe pipe_;
    std::string waiting_;
};

}  // namespace yoke
