// find_state.h: finds the state at a path. The path may be a safetensors file, the index of a set, a file replaced by
// a set, or a folder with one of these.
#pragma once

#include "core/state/read_file.h"

#include <optional>
#include <string>

namespace yoke {

struct FoundState {
    std::string path;
    std::optional<ReadFile> file = {};
    std::string index = {};  // text of the index
    bool is_index = false;
};
// Finds the file or index for the path and opens it. If it is an index, reads it. Raises YOKE_E_IO if there is no
// file, and YOKE_E_CHECKPOINT if a folder has no state or several.
FoundState find_state(const std::string &path, const char *call);

}  // namespace yoke
