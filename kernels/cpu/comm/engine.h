// The host engine of collectives, as the backend's table gets it: over shared memory inside a node and TCP between
// nodes.
#pragma once

#include "core/backend/comm.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu::comm {

// Returns the engine's table. `combine` belongs to the instruction set in use.
const yoke_backend_comm *engine(CombineFn combine);

}  // namespace yoke::cpu::comm
