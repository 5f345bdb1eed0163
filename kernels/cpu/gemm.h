// oneDNN's way to compute a product of matrices.
#pragma once

#include "kernels/common/product.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Matrix;
using kernels::Product;

// Computes the product through oneDNN, by the team. *done is false, with YOKE_OK and nothing written, where oneDNN does
// not take its dtype or strides; the caller's own loops take everything. The bits do not depend on the team.
yoke_status gemm_onednn(const yoke_launch *launch, const Product &product, bool *done);

// Holds oneDNN to the instruction set that YOKE_CPU_ISA asks for; before its first use.
void limit_onednn(const char *isa);

// "oneDNN 2.6.3", or that the build has none.
void describe_onednn(char *text, size_t bytes);

// Makes what oneDNN makes once for all products, a millisecond's work. While it does, an exit() elsewhere would destroy
// what is in the making (gemm_exit.h); so it is done when the CPU is opened, rather than amid the first products.
void prepare_onednn();

// Whether it multiplies bf16 by instructions made for that; a user may have held it below what the processor has.
bool onednn_has_bf16();

}  // namespace yoke::cpu
