// Failures whose messages name the failed step.
#pragma once

#include "kernels/cpu/cpu.h"

namespace yoke::cpu::comm {

// "cpu: cannot listen on 10.0.0.7: Address not available", with errno's number.
yoke_status fail_system(yoke_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

// Warns the user of the program.
void warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace yoke::cpu::comm
