// load.h: loads states from safetensors files and sets.
#pragma once

#include "core/state/read_file.h"
#include "core/state/tree.h"

#include <functional>
#include <string>

namespace yoke {

struct LoadOptions {
    Device *device = nullptr;      // null: the CPU
    bool mmap = true;              // on the CPU: pages of the file, read at the first touch
    yoke_dtype dtype = YOKE_NONE;  // dtype for floating-point tensors; YOKE_NONE: the file's dtype
    // Chooses tensors by their names in the file. If empty, all tensors load, as the saved tree.
    std::function<bool(std::string_view)> wanted;
    // Checks the file before the load. If it raises, the load fails with this error.
    std::function<void(const ReadFile &)> check;
};

// Returns the state in a file, or in a set of files, as if all its tensors were in a single file. core/state/stored.h
// describes the path. On the CPU, tensors are pages of the file, private to this process once written. On other
// devices, or if an element would not be aligned, tensors are copies. If the file has no tree, or with `wanted`, the
// state is a dict by the names in the file. Raises YOKE_E_CHECKPOINT for a file that breaks a rule of its format, and
// YOKE_E_IO for an error of the system.
Ref<State> load_state(const std::string &path, const LoadOptions &options, const char *call);

// Returns a description of the state at the path, without the data: {"path", "kind": "file" or "set", "bytes",
// "header_bytes", "files": {NAME: BYTES}, "tensors": {NAME: {"dtype", "shape", "bytes", "offset"; of a set "file"}},
// "metadata": {KEY: STRING}, "has_tree"}.
Ref<State> load_info(const std::string &path, const char *call);

}  // namespace yoke
