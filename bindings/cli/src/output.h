// output.h: whether what was printed arrived.
#pragma once

namespace yoke::cli {

// Gives a standard stream that was closed an end where writing fails. Else the next file that is opened, of the kernel
// or of a driver, would get its number and with it what is printed.
void hold_standard_streams();

// Hands on what was printed so far. Raises where any of it was lost: a disk is full, or stdout is closed.
void flush_output();

}  // namespace yoke::cli
