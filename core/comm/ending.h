// ending.h: how a process that has groups ends, for the ranks that then miss it.
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// What the host's script has raised and nobody caught, "ValueError: bad"; "" for nothing. It counts for groups that are
// left from then on, and for who launched the process, unless it ends with the exit code 0.
void note_raised(std::string_view what);

// "its script raised ValueError: bad", or "its process ended with exit code 3"; "" where it is not known, or it goes
// on.
std::string ending();

// Has `leave` called when the process exits; ending() knows the exit code then, where the C library tells it.
void leave_at_exit(void (*leave)());

}  // namespace yoke
