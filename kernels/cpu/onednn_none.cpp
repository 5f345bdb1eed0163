// Functions for a build without oneDNN: all work is left to Yoke's own loops.
#include "kernels/cpu/onednn.h"

#include <cstdio>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/gemm.h"

namespace yoke::cpu {

yoke_status gemm_onednn(const yoke_launch *, const Product &, bool *done)
{
    *done = false;
    return YOKE_OK;
}

yoke_status conv_onednn(const yoke_launch *, const Conv &, AddBias, bool *done)
{
    *done = false;
    return YOKE_OK;
}

void limit_onednn(const char *) {}

void prepare_onednn() {}

void describe_onednn(char *text, size_t bytes)
{
    snprintf(text, bytes, "no oneDNN (Yoke's own loops compute products and convolutions)");
}

bool onednn_has_bf16()
{
    return false;
}

}  // namespace yoke::cpu
