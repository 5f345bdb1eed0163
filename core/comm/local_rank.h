// local_rank.h: which of its machine's ranks this process is, for layers below this one, which core/base/lent.h serves.
#pragma once

#include <cstdint>
#include <optional>

namespace yoke::detail {

// Returns this process's number among the ranks of its machine: as the launcher says, else as the default group has
// counted. Returns nothing for a process that is no rank, and for the only rank of its machine. Raises YOKE_E_VALUE for
// a variable that cannot be read.
std::optional<int32_t> local_rank();

// Tells whether a process belongs to this job, as a rank or as a child of one.
bool is_rank_beside(int32_t process);

// Tells whether a variable has another value here than the launcher was started with, so that each rank may have its
// own. Returns true where the system hides what the launcher was started with.
bool is_variable_of_rank(const char *name);

}  // namespace yoke::detail
