// Nodes: groups of ranks with common memory. Such ranks run on the same system and in the same network namespace, so
// their Unix sockets can connect. Machine names do not decide, because clones and containers share names.
#pragma once

#include "kernels/cpu/comm/comm.h"

namespace yoke::cpu::comm {

// Returns the place of this process: its node, its processors, the free memory, and whether it can share memory. The
// setting YOKE_COMM_TEST_NODE (for tests only) makes ranks of a single machine look like ranks of several machines.
Place this_place();

// Returns the number of processors on which these ranks may run, all together; 0 if unknown.
size_t processors_of(const Place *places, const std::vector<int> &ranks);

Layout layout_of(const Place *places, int size);

}  // namespace yoke::cpu::comm
