// NCCL as it was found: its functions, or why there is none.
//
// Contract
//  * NCCL is looked for as cuBLASLt is (library.h beside this folder), at the first question. Before that nothing of it
//    is mapped, and later it is not unmapped.
//  * It serves from version 2.19 on. Calls that came later are null where it lacks them.
//  * A library that does not return its version in time does not serve, and stays mapped.
#pragma once

#include <cstdint>

#include "kernels/cuda/host/nccl/abi.h"

namespace yoke::cuda::nccl {

constexpr double kPatience = 10;  // seconds, for what the caller gives no time

// Returns null where NCCL cannot serve.
const Calls *find_calls();

// Returns "" where NCCL serves; else one sentence: what is wrong, where, and what to do.
const char *why_unavailable();

// Returns 22809 for 2.28.9, and 0 where NCCL cannot serve. The first question has NCCL return its version within that
// time.
int32_t find_version(double timeout_s = kPatience);

}  // namespace yoke::cuda::nccl
