// activation.cpp: activations: shape rules and vjps.
#include "core/ops/pointwise.h"

namespace yoke {

namespace {

void check_approximate(std::string_view value, const char *call)
{
    if (value != "none" && value != "tanh")
        fail(YOKE_E_VALUE, "%s: argument 'approximate' is \"%s\"; it is \"none\" or \"tanh\"", call,
             std::string(value).c_str());
}

}  // namespace

void infer_relu(ReluArgs a, Plan &plan)
{
    infer_number(a.x(), plan);
}

void vjp_relu(ReluArgs, Backward &b)
{
    b.set(ReluArgs::kX, ops::relu_backward(b.grad(), b.out()));
}

void infer_tanh(TanhArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_tanh(TanhArgs, Backward &b)
{
    b.set(TanhArgs::kX, ops::tanh_backward(b.grad(), b.out()));
}

void infer_gelu(GeluArgs a, Plan &plan)
{
    check_approximate(a.approximate(), plan.name());
    infer_floating(a.x(), plan);
}

void vjp_gelu(GeluArgs a, Backward &b)
{
    b.set(a.kX, ops::gelu_backward(b.grad(), a.x(), a.approximate().data()));
}

void infer_sigmoid(SigmoidArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_sigmoid(SigmoidArgs, Backward &b)
{
    b.set(SigmoidArgs::kX, ops::sigmoid_backward(b.grad(), b.out()));
}

void infer_silu(SiluArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_silu(SiluArgs a, Backward &b)
{
    b.set(a.kX, ops::silu_backward(b.grad(), a.x()));
}

void infer_softplus(SoftplusArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_softplus(SoftplusArgs a, Backward &b)
{
    b.set(a.kX, ops::softplus_backward(b.grad(), a.x(), a.beta(), a.threshold()));
}

void infer_leaky_relu(LeakyReluArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_leaky_relu(LeakyReluArgs a, Backward &b)
{
    b.set(a.kX, ops::leaky_relu_backward(b.grad(), a.x(), a.negative_slope()));
}

void infer_elu(EluArgs a, Plan &plan)
{
    infer_floating(a.x(), plan);
}

void vjp_elu(EluArgs a, Backward &b)
{
    b.set(a.kX, ops::elu_backward(b.grad(), a.x(), a.alpha()));
}

void infer_relu_backward(ReluBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_tanh_backward(TanhBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_gelu_backward(GeluBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_sigmoid_backward(SigmoidBackwardArgs a, Plan &plan)
{
    infer_like(a.out(), plan);
}

void infer_silu_backward(SiluBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_softplus_backward(SoftplusBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_leaky_relu_backward(LeakyReluBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

void infer_elu_backward(EluBackwardArgs a, Plan &plan)
{
    infer_like(a.x(), plan);
}

}  // namespace yoke
