// writer.h: how a state comes to the files of a target: at once, or by a thread beside the work of others, one save at
// a time.
#pragma once

#include "core/state/save.h"

#include <functional>

namespace yoke {

// Waits for the save that goes on, before another one. What it failed with, if nobody was told, is told here: raised
// before one that goes on beside the script; before one that blocks, which says by itself whether the newer state is
// there, a line of the log.
void wait_for_save(const char *call, bool is_blocking);

// At most `seconds`: whether none goes on any more. What it failed with is a line of the log.
bool end_saves(double seconds) noexcept;

// Writes the state as it is at this moment, behind wait_for_save. Where it blocks, the work has ended. Else a thread of
// the library copies and writes it: one save at a time, and what copies need is room for all tensors, in default of
// which it blocks, as where the system gives no thread.
Ref<Work> save_to(std::unique_ptr<SaveTarget> target, StateToSave &&state, bool is_blocking,
                  const char *call);

// The elements of a tensor in row-major order, a chunk at a time, in memory of the host.
inline constexpr uint64_t kMostChunk = uint64_t{16} << 20;
void for_each_chunk(const yoke_tensor &x, const std::function<void(const void *, uint64_t)> &take,
                    const char *call);

}  // namespace yoke
