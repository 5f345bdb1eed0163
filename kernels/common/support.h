// Reports of a backend to the core about kernels that fail.
//
// Contract: compiled once a module, in the baseline instruction set.
#pragma once

#include <cstdarg>

#include "core/backend/backend.h"

namespace yoke::kernels {

// Gives the host a formatted message (1024 bytes at most; a point in numbers, whatever the host program's locale) and
// returns `status`.
yoke_status tell(const yoke_host *host, yoke_status status, int64_t native_code, const char *format,
                 va_list arguments) __attribute__((format(printf, 4, 0)));

// Reports "softmax: x has dtype int64, which the cpu kernel does not take; cast it first" and returns YOKE_E_TYPE.
// Only an op with a wrong shape rule comes here.
yoke_status refuse_dtype(const yoke_host *host, const char *kind, const yoke_launch *launch,
                         const char *operand, yoke_dtype dtype);

}  // namespace yoke::kernels
