// oneDNN as the rest of the backend sees it: its properties, and its settings before the first use.
#pragma once

#include <cstddef>

namespace yoke::cpu {

// Limits oneDNN to the instruction set of YOKE_CPU_ISA. Called before the first use.
void limit_onednn(const char *isa);

// Writes "oneDNN 2.6.3", or a text for a build without oneDNN.
void describe_onednn(char *text, size_t bytes);

// Makes oneDNN's shared objects, which takes a millisecond. If another thread called exit() meanwhile, exit() would
// destroy unfinished objects (onednn_exit.h). So this happens when the CPU is opened, not during the first products.
void prepare_onednn();

// Returns whether oneDNN multiplies bf16 with special instructions. A user may have limited oneDNN below the
// processor's abilities.
bool onednn_has_bf16();

// Returns whether oneDNN uses AMX for bf16. The AMX kernels have bugs (2.6): gemm_even.h, conv_parts.cpp.
bool onednn_has_amx();

}  // namespace yoke::cpu
