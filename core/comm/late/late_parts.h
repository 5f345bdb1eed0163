// late_parts.h: parts of a `LateCall`.
#pragma once

#include "core/backend/comm.h"
#include "core/base/deadline.h"
#include "core/base/script.h"
#include "core/tensor/tensor.h"

#include <cstdint>

namespace yoke {

// Place of a call in the orders of its group and of its stream.
struct CallNumber {
    yoke_comm_signature signature{};
    Deadline deadline = Deadline::after(0);
    const ScriptLine *line = nullptr;  // line of the script's call
    uint64_t place = 0;                // on the stream
};

// Tensors for the engine; absent if the engine can use the call's own.
struct DenseTensors {
    Tensor in, out;
};

}  // namespace yoke
