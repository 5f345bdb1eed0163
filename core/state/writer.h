// writer.h: writes a state to the files of a target: at once, or by a background thread, a single save at a time.
#pragma once

#include "core/state/save.h"

#include <functional>

namespace yoke {

// Waits for the current save, before another save. If its failure was not reported, reports it here. Before a save in
// the background, the failure is raised. Before a blocking save, the failure is a line of the log, because the
// blocking save itself shows whether the newer state is there. Raises YOKE_E_STATE in the thread of the current save.
void wait_for_save(const char *call, bool is_blocking);

// Waits for the current save, at most `seconds` (below 0: without a limit), and returns whether no save is running.
// Logs a failure of the save.
bool end_saves(double seconds) noexcept;

// Writes the state as of now, after wait_for_save, and returns the work. If the save blocks, the work has ended at
// the return. Else, a thread of the library copies and writes the state: a single save at a time, with free memory
// for copies of all tensors. If memory or a thread is missing, the save blocks.
Ref<Work> save_to(std::unique_ptr<SaveTarget> target, StateToSave &&state, bool is_blocking,
                  const char *call);

// Most bytes of a chunk that for_each_chunk copies.
inline constexpr uint64_t kMostChunk = uint64_t{16} << 20;
// Passes the elements of a tensor to `take` in row-major order, in host memory. A row-major tensor in host memory is
// passed whole. Other tensors are copied a chunk at a time.
void for_each_chunk(const yoke_tensor &x, const std::function<void(const void *, uint64_t)> &take,
                    const char *call);

}  // namespace yoke
