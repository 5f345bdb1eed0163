// find_state.h: where the state is that a path names: a safetensors file, the index of a set, the file in the place of
// which a set stands, or a folder with one of them.
#pragma once

#include "core/state/read_file.h"

#include <optional>
#include <string>

namespace yoke {

struct FoundState {
    std::string path;
    std::optional<ReadFile> file = {};
    std::string index = {};  // its text
    bool is_index = false;
};
// Opens what the path names, and reads it if it is an index.
FoundState find_state(const std::string &path, const char *call);

}  // namespace yoke
