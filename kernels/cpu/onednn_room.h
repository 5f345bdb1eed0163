// Check for free memory before calls without their own check.
//
// If memory is missing, libgomp ends the process, and parts of oneDNN write to memory that they did not get. So Yoke
// takes as much memory as these calls take and gives the memory back directly before. Then the allocator has the
// memory, or the system had it a moment ago.
#pragma once

#include <cstdint>

namespace yoke::cpu {

// Returns whether there is memory for the objects that oneDNN makes for a product: code, tables, and operands of so
// many bytes.
bool has_room_for_onednn(uint64_t operand_bytes);

// Returns whether there is memory for a thread's first omp_set_num_threads, a few hundred bytes.
bool has_room_for_openmp();

}  // namespace yoke::cpu
