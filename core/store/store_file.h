// store_file.h: a store in a file that all ranks reach: on one machine, or on a file system with locks.
//
// The file is a log of changes. A writer holds a lock, and first cuts off a change left half written by a killed
// writer. Every process holds another lock as long as it has the file open. If no living process holds this lock, the
// contents are left over from a former run and are dropped. The last process removes the file.
#pragma once

#include "core/store/store.h"

namespace yoke {

inline constexpr size_t kLongestStoreFile = size_t{256} << 20;

// Opens the store in the file at `path`, and makes the file if it is missing. `run` names this job, alike on all
// ranks. Raises YOKE_E_COMM if living processes of another job have the file open. Raises YOKE_E_IO if the file
// cannot be made or is not Yoke's, and YOKE_E_TIMEOUT if it stays locked.
std::shared_ptr<Store> open_file_store(const std::string &path, const std::string &run,
                                       Deadline deadline);

}  // namespace yoke
