// matmul.cpp: matrix products: shape rules and vjps.
#include "core/base/config.h"
#include "core/ops/family.h"
#include "core/ops/recompute/remake.h"

namespace yoke {

namespace {

void check_same_dtype(const yoke_tensor &x, const yoke_tensor &y, const char *second,
                      const char *call)
{
    if (x.dtype != y.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s and '%s' is %s; cast one of them first", call,
             name(x.dtype), second, name(y.dtype));
    if (x.dtype == YOKE_BOOL)
        fail(YOKE_E_TYPE, "%s: a product of bool matrices is not supported; cast them first", call);
}

// Returns x as a matrix of rows: all axes but the last become a single axis.
Tensor rows(const yoke_tensor &x)
{
    if (x.ndim == 2) return Tensor::share(const_cast<yoke_tensor *>(&x));
    int64_t count = 1;  // counted here, since a -1 has no meaning without columns
    for (const int64_t size : x.shape().first(static_cast<size_t>(x.ndim - 1))) count *= size;
    return ops::reshape(x, Dims{count, x.shape_[x.ndim - 1]});
}

Tensor transposed(const yoke_tensor &x)
{
    return ops::transpose(x, -2, -1);
}

// Arguments of the three ops behind linear: all begin with x, weight and bias, and call themselves linear in
// messages.
enum : int { kX, kWeight, kBias };
constexpr const char *kLinear = "linear";

void check_linear_bias(const yoke_tensor &x, const yoke_tensor &weight, const yoke_tensor &bias)
{
    check_same_dtype(x, bias, "bias", kLinear);
    if (bias.ndim != 1 || bias.shape_[0] != weight.shape_[0])
        fail(YOKE_E_VALUE,
             "%s: argument 'bias' has shape %s; for a weight of shape %s it must be [%lld]",
             kLinear, to_string(bias.shape()).c_str(), to_string(weight.shape()).c_str(),
             static_cast<long long>(weight.shape_[0]));
}

Dims infer_product(const Args &a, Plan &plan)
{
    const yoke_tensor &x = a.tensor(kX), &weight = a.tensor(kWeight);
    check_same_dtype(x, weight, "weight", kLinear);
    check_floating(x, kLinear, "x");
    if (weight.ndim != 2 || x.ndim == 0 || x.shape_[x.ndim - 1] != weight.shape_[1])
        fail(YOKE_E_VALUE,
             "%s: argument 'x' has shape %s and 'weight' %s; they must be [..., in] and [out, in]",
             kLinear, to_string(x.shape()).c_str(), to_string(weight.shape()).c_str());
    if (const yoke_tensor *bias = a.tensor_or_null(kBias)) check_linear_bias(x, weight, *bias);
    Dims shape{x.shape()};
    shape[x.ndim - 1] = weight.shape_[0];
    plan.result(shape, x.dtype);
    plan.work(2.0 * static_cast<double>(x.numel) * static_cast<double>(weight.shape_[0]));
    return shape;
}

// Returns the dtype for the gradients of weight and bias. After casts of autocast it is float32: the sums are rounded
// once, and need no cast. On the host, products of halves are rounded to halves.
yoke_dtype dtype_of_gradients(const yoke_tensor &x, const Backward &b)
{
    const bool wide = is_half(x.dtype) && !x.device->host && b.takes_f32(kWeight) &&
                      (!b.needs(kBias) || b.takes_f32(kBias));
    return wide ? YOKE_F32 : x.dtype;
}

// Sets the gradients of weight, and of bias if it needs one, from an x and a gradient of rows. If the walk allows it,
// adds to the gradient of the weight's leaf.
void set_weight_and_bias(const yoke_tensor &x, const yoke_tensor &g, Backward &b)
{
    const yoke_dtype dtype = dtype_of_gradients(x, b);
    const Dims shape{g.shape_[1], x.shape_[1]};
    Tensor weight, bias;
    if (dtype != x.dtype) weight = b.leaf_gradient(kWeight, {&x, &g});
    const bool adds = weight.present();
    if (!adds) weight = make_empty(*x.device, dtype, shape, kLinear);
    if (b.needs(kBias)) bias = make_empty(*x.device, dtype, Dims{shape[0]}, kLinear);
    yoke_tensor *const into[] = {weight.get(), bias.get()};
    ops::product_gradients({into, bias.present() ? 2u : 1u}, g, x, adds);
    if (!adds) b.set(kWeight, std::move(weight));
    if (bias.present()) b.set(kBias, std::move(bias));
}

// Sets the gradients of x, weight and bias from the gradient of the product, before the activation.
void vjp_product(const Args &a, Backward &b, const Tensor &grad)
{
    if (b.needs(kX)) b.set(kX, ops::matmul(grad, a.tensor(kWeight)));
    if (!b.needs(kWeight) && !b.needs(kBias)) return;
    const Tensor g = grad->ndim == 1 ? ops::unsqueeze(grad, 0) : rows(grad);
    if (b.needs(kWeight)) {
        const yoke_tensor &x = a.tensor(kX);
        return set_weight_and_bias(x.ndim == 1 ? ops::unsqueeze(x, 0) : rows(x), g, b);
    }
    const int64_t first = 0;
    b.set(kBias, ops::sum(g, IntList(&first, 1)));
}

bool wants_gradient(const yoke_tensor *x)
{
    return x && x->requires_grad();
}

}  // namespace

void infer_matmul(MatmulArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &y = a.y();
    check_same_dtype(x, y, "y", plan.name());
    if (x.ndim == 0 || y.ndim == 0)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'x' has shape %s and 'y' %s; both need at least one axis, use mul for scalars",
            plan.name(), to_string(x.shape()).c_str(), to_string(y.shape()).c_str());
    const int64_t inner = x.shape_[x.ndim - 1], other = y.shape_[y.ndim == 1 ? 0 : y.ndim - 2];
    if (inner != other)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'x' of shape %s has %lld columns, but 'y' of shape %s has %lld rows; they must agree%s",
            plan.name(), to_string(x.shape()).c_str(), static_cast<long long>(inner),
            to_string(y.shape()).c_str(), static_cast<long long>(other),
            y.ndim > 1 && y.shape_[y.ndim - 1] == inner ? "; y.mT would fit" : "");
    const auto batch = [](const yoke_tensor &t) {
        return t.shape().first(static_cast<size_t>(std::max(t.ndim - 2, 0)));
    };
    Dims shape = broadcast(batch(x), batch(y), plan.name());
    if (x.ndim > 1) shape.push_back(x.shape_[x.ndim - 2]);
    if (y.ndim > 1) shape.push_back(y.shape_[y.ndim - 1]);
    plan.work(2.0 * static_cast<double>(checked_numel(shape, plan.name())) *
              static_cast<double>(inner));
    plan.result(shape, x.dtype);
}

void vjp_matmul(MatmulArgs a, Backward &b)
{
    // Vectors become matrices, and the gradient too.
    Tensor x = alias(a.x()), y = alias(a.y()), g = b.grad();
    if (y->ndim == 1) y = ops::unsqueeze(y, -1), g = ops::unsqueeze(g, -1);
    if (x->ndim == 1) x = ops::unsqueeze(x, 0), g = ops::unsqueeze(g, -2);
    if (b.needs(a.kX))
        b.set(a.kX, ops::reshape(sum_to(ops::matmul(g, transposed(y)), x->shape()), a.x().shape()));
    if (!b.needs(a.kY)) return;
    // With a matrix against a batch, the batch acts as a long matrix, so no sum over the batch is needed.
    Tensor product =
        y->ndim == 2 ? ops::matmul(transposed(rows(x)), rows(g)) : ops::matmul(transposed(x), g);
    b.set(a.kY, ops::reshape(sum_to(product, y->shape()), a.y().shape()));
}

Tensor compose_linear(LinearArgs a)
{
    const std::string_view activation = a.activation();
    if (activation == "none") return ops::linear_internal(a.x(), a.weight(), a.bias());
    if (activation == "relu") return ops::linear_relu(a.x(), a.weight(), a.bias());
    if (activation != "gelu" && activation != "gelu_tanh" && activation != "silu")
        fail(
            YOKE_E_VALUE,
            "linear: argument 'activation' is \"%s\"; it must be \"none\", \"relu\", \"gelu\", \"gelu_tanh\" or \"silu\"",
            std::string(activation).c_str());
    const bool keep = grad_enabled() && (wants_gradient(&a.x()) || wants_gradient(&a.weight()) ||
                                         wants_gradient(a.bias()));
    return ops::linear_act(a.x(), a.weight(), a.bias(), activation.data(), keep);
}

void infer_linear_internal(LinearInternalArgs a, Plan &plan)
{
    infer_product(a, plan);
}

void vjp_linear_internal(LinearInternalArgs a, Backward &b)
{
    vjp_product(a, b, b.grad());
}

void infer_product_gradients(ProductGradientsArgs a, Plan &plan)
{
    plan.work(2.0 * static_cast<double>(a.x().numel) * static_cast<double>(a.grad().shape_[1]));
}

void infer_linear_relu(LinearReluArgs a, Plan &plan)
{
    infer_product(a, plan);
}

void vjp_linear_relu(LinearReluArgs a, Backward &b)
{
    vjp_product(a, b, ops::relu_backward(b.grad(), b.out()));
}

void infer_linear_act(LinearActArgs a, Plan &plan)
{
    const Dims shape = infer_product(a, plan);
    plan.result(a.keep() ? shape : Dims{0}, a.x().dtype);  // input of the activation
}

// Switch of cuBLASLt's approximation by tanh, which uses sums more precise than the kept sums.
static constinit Switch lt_activations("YOKE_CUBLASLT_FUSE_ACTIVATIONS");

// Describes the recompute of the result: kernels apply the activation to the kept sums, like the op of the
// activation's name. Returns false if the call keeps no sums, or the result may have other bits.
bool remake_of_linear_act(const yoke_launch &launch, const Device &device, Remake &remake)
{
    constexpr size_t kOut = 3, kKept = 4;
    if (!launch.operands[kKept].numel) return false;
    const std::string_view activation = launch.params[0].v.string;
    if (!device.host && activation == "gelu_tanh" && lt_activations.is_on()) return false;
    const bool is_silu = activation == "silu";
    remake = {kKept,
              kOut,
              is_silu ? YOKE_OP_SILU : YOKE_OP_GELU,
              {arg_string(activation == "gelu" ? "none" : "tanh")},
              is_silu ? 0 : 1};
    return true;
}

void vjp_linear_act(LinearActArgs a, Backward &b)
{
    const yoke_tensor &before = b.out(1);
    const std::string_view activation = a.activation();
    vjp_product(a, b,
                activation == "silu"
                    ? ops::silu_backward(b.grad(), before)
                    : ops::gelu_backward(b.grad(), before, activation == "gelu" ? "none" : "tanh"));
}

}  // namespace yoke
