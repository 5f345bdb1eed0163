// ending.h: the end of a process with groups, for the ranks that miss this process.
#pragma once

#include <string>
#include <string_view>

namespace yoke {

// Notes the uncaught error of the host program's script, "ValueError: bad"; "" takes an error back. Groups left from
// now on publish the error. The launcher gets the error too, unless the process ends with exit code 0.
void note_raised(std::string_view what);

// Returns "its script raised ValueError: bad", or "its process ended with exit code 3"; "" if unknown, or if the
// process goes on.
std::string ending();

// Registers `leave`, which is called when the process exits. By then ending() knows the exit code, if the C library
// reports it.
void leave_at_exit(void (*leave)());

}  // namespace yoke
