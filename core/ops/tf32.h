// tf32.h: whether products of float32 may be rounded to TF32, for the whole process.
//
// Every launch record carries it (YOKE_LAUNCH_TF32), so that what a graph was captured with stays with the graph.
#pragma once

namespace yoke {

// At first what YOKE_ALLOW_TF32 says, else false. Raises YOKE_E_VALUE for a value that cannot be read.
bool allows_tf32();

// For launches of every thread from now on.
void allow_tf32(bool allowed) noexcept;

}  // namespace yoke
