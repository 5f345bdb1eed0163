// exchange.h: numbers and states that the core hands from rank to rank by ordinary calls of a group.
#pragma once

#include "core/comm/group.h"
#include "core/state/tree.h"

#include <string>
#include <vector>

namespace yoke {

// Those of all ranks, one after the other; each gives as many.
std::vector<int64_t> gathered(Group &group, const std::vector<int64_t> &mine, const char *call);
// Those of rank `root`; each gives as many.
std::vector<int64_t> from_rank(Group &group, int32_t root, const std::vector<int64_t> &mine,
                               const char *call);

// A text as so many numbers, cut where it is longer; and back, to its first NUL.
std::vector<int64_t> packed(const std::string &text, size_t length);
std::string unpacked(const int64_t *numbers, size_t length);

// The tree of rank `root`, on all ranks: there the one that it gave, elsewhere a new one, whose tensors lie on the CPU.
// What the others give is not looked at.
Ref<State> state_from(Group &group, int32_t root, const Ref<State> &mine, const char *call);

}  // namespace yoke
