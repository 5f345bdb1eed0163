// NCCL as found: its functions, or the reason that it is missing.
//
// Contract
//  * Yoke looks for NCCL in the same way as for cuBLASLt (library.h in the parent folder), at the first question.
//    Before, no part of NCCL is mapped; later, NCCL is not unmapped.
//  * NCCL works from version 2.19 on. Later calls are null if the library is missing them.
//  * A library that does not return its version in time counts as not working, and stays mapped.
#pragma once

#include <cstdint>

#include "kernels/cuda/host/nccl/abi.h"

namespace yoke::cuda::nccl {

constexpr double kPatience = 10;  // seconds, for what the caller gives no time

// Returns NCCL's functions, or null if NCCL does not work.
const Calls *find_calls();

// Returns "" if NCCL works, else a sentence with the problem, the place, and the remedy.
const char *why_unavailable();

// Returns 22809 for 2.28.9, and 0 if NCCL does not work. At the first question, NCCL must return its version within
// this time.
int32_t find_version(double timeout_s = kPatience);

}  // namespace yoke::cuda::nccl
