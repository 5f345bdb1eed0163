// local_rank.h: this process's number among its machine's ranks, for layers below, which core/base/lent.h serves.
#pragma once

#include <cstdint>
#include <optional>

namespace yoke::detail {

// Returns this process's number among the ranks of its machine: the launcher's number, else the default group's.
// Returns null if the process is no rank, or the only rank of its machine. Raises YOKE_E_VALUE for an invalid
// variable.
std::optional<int32_t> local_rank();

// Returns whether the variables of a process name the job of this process. Such a process is a rank of the job, or a
// child of a rank. Returns false if the variables cannot be read.
bool is_rank_beside(int32_t process);

// Returns whether a variable has a different value here than at the start of the launcher, so each rank may have its
// own. Returns true if the system hides the launcher's variables, and false if no launcher made this process a rank.
bool is_variable_of_rank(const char *name);

}  // namespace yoke::detail
