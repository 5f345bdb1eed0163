// What a string parameter of an op chooses. Host code.
#pragma once

#include "kernels/common/operand.h"

namespace yoke::kernels {

// What linear does to its result. The same type in every instruction set: a module's parts hand it to one another.
enum class Activation : int32_t { kNone, kRelu, kGelu, kGeluTanh, kSilu };

}  // namespace yoke::kernels

YOKE_KERNELS_BEGIN

inline bool is_text(const yoke_arg &arg, const char *text)
{
    return strcmp(arg.v.string, text) == 0;
}

// How the losses of rows become a result: each for itself, their mean, or (neither) their sum.
struct LossReduction {
    bool mean, none;

    explicit LossReduction(const yoke_arg &arg)
        : mean(is_text(arg, "mean")), none(is_text(arg, "none"))
    {
    }
};

// Of gelu and its gradient: the approximation by tanh, not the error function.
inline bool is_tanh_gelu(const yoke_launch *launch)
{
    return is_text(launch->params[0], "tanh");
}

// Of _linear_act.
inline Activation activation_named(const yoke_arg &arg)
{
    if (is_text(arg, "gelu")) return Activation::kGelu;
    return is_text(arg, "silu") ? Activation::kSilu : Activation::kGeluTanh;
}

YOKE_KERNELS_END
