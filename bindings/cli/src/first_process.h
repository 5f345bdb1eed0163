// first_process.h: the command as the first process of a container (process 1 of its namespace), which the system makes
// the parent of every process whose own parent has ended. Somebody must wait for these, or they stay as zombies.
#pragma once

namespace yoke::cli {

bool is_first_process() noexcept;

// Runs this very command in a child, sends the signals on that come, and waits for every process that ends, until the
// child does. Returns its exit code, 128 + N where signal N ended it. Raises std::system_error where the child cannot
// be started.
int be_first_process();

}  // namespace yoke::cli
