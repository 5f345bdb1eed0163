// The core's side, for the CUDA module's files about cuDNN, and the loaded libraries.
#pragma once

#include <set>
#include <string>

namespace yoke::cuda {

// Returns the folders with mapped parts of a cuDNN.
std::set<std::string> mapped_folders();

}  // namespace yoke::cuda
