// output.h: whether what was printed arrived.
#pragma once

namespace yoke::cli {

// Opens closed standard streams on an end where writing fails. Else the next opened file, of the kernel or a driver,
// would get the stream's number and the printed text.
void hold_standard_streams();

// Writes out the printed text. Raises if any of it was lost: a disk is full, or stdout is closed.
void flush_output();

}  // namespace yoke::cli
