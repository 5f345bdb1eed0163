// The names of ops and dtypes for messages. names.cpp is compiled once into each backend.
#pragma once

#include "core/backend/backend.h"

namespace yoke::kernels {

const char *op_name(int32_t op);
const char *dtype_name(yoke_dtype dtype);

}  // namespace yoke::kernels
