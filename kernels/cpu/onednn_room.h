// Whether the host has memory, asked before those are called that do not ask.
//
// libgomp ends the process where it finds none, and parts of oneDNN write to what they were not given. So as much as
// they take is taken and given back right before; the allocator then has it, or the system had it a moment ago.
#pragma once

#include <cstdint>

namespace yoke::cpu {

// For what oneDNN makes for a product: code, tables, and room for operands of so many bytes.
bool has_room_for_onednn(uint64_t operand_bytes);

// For a thread's first omp_set_num_threads, a few hundred bytes.
bool has_room_for_openmp();

}  // namespace yoke::cpu
