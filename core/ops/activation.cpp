// activation.cpp: activations: shape rules and vjps.
#include "core/ops/family.h"
#include "core/ops/rules.h"

namespace yoke {

namespace {

void check_approximate(std::string_view value, const char *call)
{
    if (value != "none" && value != "tanh")
        fail(YOKE_E_VALUE, "%s: argument 'approximate' is \"%s\"; it must be \"none\" or \"tanh\"",
             call, std::string(value).c_str());
}

}  // namespace

void vjp_relu(ReluArgs, Backward &b)
{
    b.set(ReluArgs::kX, ops::relu_backward(b.grad(), b.out()));
}

void vjp_tanh(TanhArgs, Backward &b)
{
    b.set(TanhArgs::kX, ops::tanh_backward(b.grad(), b.out()));
}

void infer_gelu(GeluArgs a, Plan &plan)
{
    check_approximate(a.approximate(), plan.name());
    rules::floating_like(a, a.kX, plan);
}

void vjp_gelu(GeluArgs a, Backward &b)
{
    b.set(a.kX, ops::gelu_backward(b.grad(), a.x(), a.approximate().data()));
}

void vjp_sigmoid(SigmoidArgs, Backward &b)
{
    b.set(SigmoidArgs::kX, ops::sigmoid_backward(b.grad(), b.out()));
}

void vjp_silu(SiluArgs a, Backward &b)
{
    b.set(a.kX, ops::silu_backward(b.grad(), a.x()));
}

void vjp_softplus(SoftplusArgs a, Backward &b)
{
    b.set(a.kX, ops::softplus_backward(b.grad(), a.x(), a.beta(), a.threshold()));
}

void vjp_leaky_relu(LeakyReluArgs a, Backward &b)
{
    b.set(a.kX, ops::leaky_relu_backward(b.grad(), a.x(), a.negative_slope()));
}

void vjp_elu(EluArgs a, Backward &b)
{
    b.set(a.kX, ops::elu_backward(b.grad(), a.x(), a.alpha()));
}

}  // namespace yoke
