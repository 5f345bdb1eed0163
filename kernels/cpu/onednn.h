// oneDNN as the rest of the backend sees it: what it is, and what it is told before its first use.
#pragma once

#include <cstddef>

namespace yoke::cpu {

// Holds oneDNN to the instruction set that YOKE_CPU_ISA asks for; before its first use.
void limit_onednn(const char *isa);

// "oneDNN 2.6.3", or that the build has none.
void describe_onednn(char *text, size_t bytes);

// Makes what oneDNN makes once for all its primitives, a millisecond's work. While it does, an exit() elsewhere would
// destroy what is in the making (onednn_exit.h); so it is done when the CPU is opened, rather than amid the first
// products.
void prepare_onednn();

// Whether it multiplies bf16 by instructions made for that; a user may have held it below what the processor has.
bool onednn_has_bf16();

// Whether it does so by AMX, whose kernels have faults (2.6): gemm_even.h, conv_parts.cpp.
bool onednn_has_amx();

}  // namespace yoke::cpu
