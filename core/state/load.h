// load.h: states out of safetensors files and sets of them.
#pragma once

#include "core/state/read_file.h"
#include "core/state/tree.h"

#include <functional>
#include <string>

namespace yoke {

struct LoadOptions {
    Device *device = nullptr;      // null: the CPU
    bool mmap = true;              // on the CPU: pages of the file, read when they are touched
    yoke_dtype dtype = YOKE_NONE;  // of what floats; YOKE_NONE: as it is in the file
    // Which tensors, by their names in the file; all, as the tree that was saved, where it is empty.
    std::function<bool(std::string_view)> wanted;
    // Sees the file before anything is made of it; what it raises is what the load fails with.
    std::function<void(const ReadFile &)> check;
};

// The state in a file, or in a set of files, as if it were one of all their tensors: core/state/stored.h says what a
// path may name. On the CPU tensors are pages of it, private to this process once they are written; elsewhere,
// or where an element would not be aligned, copies. Without a tree in it, or with `wanted`, a dict by the names in the
// file. Raises YOKE_E_CHECKPOINT for a file that breaks a rule of its format, and YOKE_E_IO for what the system
// refuses.
Ref<State> load_state(const std::string &path, const LoadOptions &options, const char *call);

// What stands there, without the data: {"path", "kind": "file" or "set", "bytes", "header_bytes", "files": {NAME:
// BYTES}, "tensors": {NAME: {"dtype", "shape", "bytes", "offset"; of a set "file"}}, "metadata": {KEY: STRING},
// "has_tree"}.
Ref<State> load_info(const std::string &path, const char *call);

}  // namespace yoke
