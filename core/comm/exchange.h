// exchange.h: numbers and states that the core sends between ranks by ordinary calls of a group.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

#include <string>
#include <vector>

namespace yoke {

// Exchanges numbers with all ranks. Returns the numbers of all ranks, in the order of ranks. All ranks pass equally
// many numbers.
std::vector<int64_t> gathered(Group &group, const std::vector<int64_t> &mine, const char *call);
// Returns the numbers of rank `root` on all ranks. All ranks pass equally many numbers.
std::vector<int64_t> from_rank(Group &group, int32_t root, const std::vector<int64_t> &mine,
                               const char *call);

// Packs the bytes of a text in `length` numbers, and cuts a longer text. `unpacked` returns the text up to the first
// NUL.
std::vector<int64_t> packed(const std::string &text, size_t length);
std::string unpacked(const int64_t *numbers, size_t length);

// Returns the tree of rank `root` on all ranks. The root gets its own tree; other ranks get a new tree with tensors
// on the CPU. Only the root's `mine` is read.
Ref<State> state_from(Group &group, int32_t root, const Ref<State> &mine, const char *call);

}  // namespace yoke
