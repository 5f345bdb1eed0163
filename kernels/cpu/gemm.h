// oneDNN's way to compute a product of matrices.
#pragma once

#include "kernels/common/product.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

using kernels::Matrix;
using kernels::Product;

// Computes the product through oneDNN. *done is false, with YOKE_OK and nothing written, where oneDNN does not take
// its dtype or strides; the caller's own loops take everything.
yoke_status gemm_onednn(const Product &product, bool *done);

// Holds oneDNN to the instruction set that YOKE_CPU_ISA asks for; before its first use.
void limit_onednn(const char *isa);

}  // namespace yoke::cpu
