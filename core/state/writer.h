// writer.h: saves that go on beside the work of others, one at a time.
#pragma once

#include "core/state/save.h"
#include "core/tensor/snapshot.h"

namespace yoke {

// Waits for the save that goes on, before another one. What it failed with, if nobody was told, is told here: raised
// before one that goes on beside the script; before one that blocks, which says by itself whether the newer state is
// there, a line of the log.
void wait_for_save(const char *call, bool is_blocking);

// At most `seconds`: whether none goes on any more. What it failed with is a line of the log.
bool end_saves(double seconds) noexcept;

// Writes the files, whose tensors are those of the snapshot, in a thread of its own, or here, with a warning, where the
// system gives no thread.
Ref<Work> write_beside(std::unique_ptr<SaveTarget> target, std::vector<StateToSave::File> files,
                       Ref<Snapshot> snapshot, uint64_t bytes, const char *call);

}  // namespace yoke
