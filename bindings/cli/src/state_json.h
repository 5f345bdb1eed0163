// state_json.h: saved states as JSON: the result of yoke_load_info, and further facts.
#pragma once

#include "bindings/cli/src/json.h"

#include <string>

namespace yoke::cli {

// Returns whether a path is a folder of a CheckpointManager.
bool holds_checkpoints(const std::string &path);

// Returns the info, with "totals" by dtype, "whole", "verified", and "problem" (null if whole). For a step of a
// CheckpointManager also adds "step", "commit" and "time", and compares the files with the manifest. A damaged state
// may have only these and "path". Raises Failure for a path without a state, and if the system refuses to read.
Json state_json(const std::string &path, bool verify);

// Returns {"path", "kind": "checkpoints", "latest", "whole", "steps": [{"step", "commit", "time", "bytes", "tensors",
// "whole", "verified", "problem"}]}, by number. The folder is whole if each step is whole. A folder step-N that no
// manager has written is not a step: its "whole" is null.
Json checkpoints_json(const std::string &path, bool verify);

}  // namespace yoke::cli
