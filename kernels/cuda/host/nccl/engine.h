// The engine "nccl", as the module's table gives it to the core.
#pragma once

#include "core/backend/comm.h"

namespace yoke::cuda::nccl {

extern const yoke_backend_comm kEngine;

}  // namespace yoke::cuda::nccl
