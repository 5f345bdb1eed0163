// The core's side, for the CUDA module's files about cuDNN, and the loaded libraries.
#pragma once

#include <set>
#include <string>

namespace yoke::cuda {

// The folders of which parts of a cuDNN are mapped.
std::set<std::string> mapped_folders();

}  // namespace yoke::cuda
