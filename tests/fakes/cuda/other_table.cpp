// The module's table as a build from another op table would have it.
#include "kernels/cuda/cuda.h"

#undef YOKE_OP_TABLE_HASH
#define YOKE_OP_TABLE_HASH 0x0123456789abcdefull
#include "kernels/cuda/module.cpp"
