// store_file.h: a table in a file that all ranks reach: on one machine, or on a file system that has locks.
//
// The file is a log of changes. Who writes holds a lock, and first cuts off what a killed writer has left half written.
// Every process holds another lock for as long as it has the file open: where no living process does, what is in it is
// left over from a former run and is dropped. The last one removes the file.
#pragma once

#include "core/store/store.h"

namespace yoke {

inline constexpr size_t kLongestStoreFile = size_t{256} << 20;

// `run` tells this job from others, alike on all of its ranks: where living processes of another one have the file open
// it is YOKE_E_COMM. YOKE_E_IO where the file cannot be made.
std::shared_ptr<Store> open_file_store(const std::string &path, const std::string &run,
                                       Deadline deadline);

}  // namespace yoke
