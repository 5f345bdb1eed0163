// views.h: gradients of views of a tensor that a recorded op changes in place.
//
// A view taken while the tape records knows its base (yoke_tensor::base). A recorded write into a view gives the base a
// new node. The node's gradient goes on to the base's former history, without the elements of the view, and the
// elements of the view go to the op that wrote. Other views of the same memory are stale then: their own history lacks
// the write. At their next use they get a new node, which leads to the base.
//
// Example: z = y * 2; v = z[0]; v *= w
//  1. v * w is recorded as a tensor of its own, m. The memory of v takes m's values, and v takes m's history.
//  2. z's node becomes a RegionWrite with edges to y * 2 and to m.
//  3. z[0], taken anew or before, gets its gradient from the RegionWrite.
#pragma once

#include "core/autograd/node.h"

namespace yoke {

// Returns the tensor whose history a write into the view x changes; null if x is no view, or a view without a base.
yoke_tensor *base_of(const yoke_tensor &x) noexcept;

// Gives a stale view the present history of its base. Raises YOKE_E_STATE, naming `call`, for a stale view that has
// a history but no base. Any thread may call this; threads that use one view at once are safe.
void renew_view(const char *call, const yoke_tensor &x);

// Raises YOKE_E_UNSUPPORTED if x is a view into which a write cannot be recorded.
void check_written_view(const char *call, const char *arg, const yoke_tensor &x);

// Gives x, which a recorded op has changed, its new history: result `index` of `node`, or none if `node` is null. If x
// is a view, the base gets a node too.
void record_write(yoke_tensor &x, Ref<Node> node, uint32_t index);

}  // namespace yoke
