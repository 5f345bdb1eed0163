// Parameters of nan_to_num, as a functor. Host code.
#pragma once

#include "kernels/common/functions.h"
#include "kernels/common/operand.h"

YOKE_KERNELS_BEGIN

// Returns NanToNum with the parameters nan, posinf and neginf of a launch. Absent ones are 0 and the ends of T's finite
// numbers.
template <class T>
inline NanToNum<compute_type<T>> nan_to_num_of(const yoke_arg *params)
{
    using C = compute_type<T>;
    constexpr double kMost = std::is_same_v<T, f16>      ? 65504.0
                             : std::is_same_v<T, bf16>   ? 0x1.fep127
                             : std::is_same_v<T, double> ? 0x1.fffffffffffffp1023
                                                         : 0x1.fffffep127;
    if constexpr (!is_float<T>) {
        return {};
    } else {
        const auto given = [](const yoke_arg &arg, double absent) {
            return arg.kind == YOKE_ARG_NONE ? (C)absent : load<T>(value_of<T>(arg));
        };
        return {given(params[0], 0), given(params[1], kMost), given(params[2], -kMost)};
    }
}

YOKE_KERNELS_END
