// Failures whose messages name the failed step.
#pragma once

#include "kernels/cpu/cpu.h"

namespace yoke::cpu::comm {

// Reports a failed system call, with errno's text and number, and returns `status`: "cpu: cannot listen on 10.0.0.7:
// Address not available".
yoke_status fail_system(yoke_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Logs a warning for the user of the program.
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace yoke::cpu::comm
