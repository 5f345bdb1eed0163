// Choices named by a string parameter of an op. Host code.
#pragma once

#include "kernels/common/operand.h"

namespace yoke::kernels {

// Activation applied by linear to its result. All instruction sets share this type, because a module's parts pass it
// to each other.
enum class Activation : int32_t { kNone, kRelu, kGelu, kGeluTanh, kSilu };

}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

inline bool is_text(const yoke_arg &arg, const char *text)
{
    return strcmp(arg.v.string, text) == 0;
}

// Reduction of the rows' losses: no reduction, the mean, or (neither) the sum.
struct LossReduction {
    bool mean, none;

    explicit LossReduction(const yoke_arg &arg)
        : mean(is_text(arg, "mean")), none(is_text(arg, "none"))
    {
    }
};

// Returns whether gelu or its gradient uses the approximation by tanh instead of the error function.
inline bool is_tanh_gelu(const yoke_launch *launch)
{
    return is_text(launch->params[0], "tanh");
}

// Returns the activation named by a parameter of _linear_act.
inline Activation activation_named(const yoke_arg &arg)
{
    if (is_text(arg, "gelu")) return Activation::kGelu;
    return is_text(arg, "silu") ? Activation::kSilu : Activation::kGeluTanh;
}

YOKE_KERNELS_END
