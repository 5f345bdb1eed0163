// state_json.h: saved states as JSON: what yoke_load_info tells, and what more is to be known.
#pragma once

#include "bindings/cli/src/json.h"

#include <string>

namespace yoke::cli {

// Whether a path is a folder of a CheckpointManager.
bool holds_checkpoints(const std::string &path);

// The info, with "totals" by dtype, "whole", "verified", and "problem", which is null where it is whole; of a step of a
// CheckpointManager also "step", "commit" and "time", and what its manifest says of its files is compared. One that is
// damaged may have no more than these and "path". Raises Failure for what is no state, and where the system refuses to
// read it.
Json state_json(const std::string &path, bool verify);

// {"path", "kind": "checkpoints", "latest", "whole", "steps": [{"step", "commit", "time", "bytes", "tensors", "whole",
// "verified", "problem"}]}, by number. Whole: each of its steps is. A folder step-N that no manager has written is
// none: its "whole" is null.
Json checkpoints_json(const std::string &path, bool verify);

}  // namespace yoke::cli
