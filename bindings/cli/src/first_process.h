// first_process.h: the command as the first process of a container (process 1 of its namespace). The system makes it
// the parent of every orphaned process. It must wait for these processes; else they stay as zombies.
#pragma once

namespace yoke::cli {

// Returns whether this process has the number 1.
bool is_first_process() noexcept;

// Runs the same command in a child, passes signals on, and waits for every ended process until the child ends.
// Returns the child's exit code, 128 + N if signal N ended it. Raises std::system_error if the child cannot be
// started.
int be_first_process();

}  // namespace yoke::cli
