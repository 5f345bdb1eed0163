// The core's side, as the CUDA module's files for cuDNN need it, and what is loaded.
#pragma once

#include <set>
#include <string>

namespace yoke::cuda {

// The folders of which parts of a cuDNN are mapped.
std::set<std::string> mapped_folders();

}  // namespace yoke::cuda
