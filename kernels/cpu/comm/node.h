// Which ranks can share memory: those of one running system and one network namespace, in which their Unix sockets
// meet. Never by the name of the host, which clones and containers share.
#pragma once

#include "kernels/cpu/comm/comm.h"

namespace yoke::cpu::comm {

// Where this process stands. The setting YOKE_COMM_TEST_NODE, which is for tests alone, makes ranks of one machine look
// like ranks of several.
Place this_place();

// How many processors these ranks have together; 0 where that is not known.
size_t processors_of(const Place *places, const std::vector<int> &ranks);

Layout layout_of(const Place *places, int size);

}  // namespace yoke::cpu::comm
