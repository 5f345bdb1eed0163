// linear, alone and with an activation. cuBLASLt adds the bias to sums that are still in registers. An activation is
// a pass over the result, so the bits equal the bits of the separate op (but see fuses() in cublaslt.cpp).
#include "kernels/common/activation.h"
#include "kernels/cuda/ops/gelu.cuh"
#include "kernels/cuda/ops/gemm.cuh"

YOKE_CUDA_BEGIN

using kernels::linear_product;
using kernels::plan_batches;
using kernels::run_batches;

// ---- work after the product ---------------------------------------------------------------------------------------

// Applies an activation. A single kernel serves all activations: each is a few instructions beside a read and a write
// of memory.
template <class T>
__device__ inline T activate(T x, Activation activation)
{
    switch (activation) {
        case Activation::kRelu:
            return store<T>(kernels::Relu()(load<T>(x)));
        case Activation::kGelu:
            return store<T>(GeluOf<FormatOfStored<T>>()(load<T>(x)));
        case Activation::kGeluTanh:
            return store<T>(GeluTanhOf<FormatOfStored<T>>()(load<T>(x)));
        case Activation::kSilu:
            return store<T>(kernels::Silu()(load<T>(x)));
        default:
            return x;
    }
}

// Computes before = product + bias and out = activation(before), for `packs` packs of N, in rows of `columns`. A
// missing product counts as 0 (there is no depth to sum over), and so does a missing bias. product, before and out
// may be the same memory.
template <class T, int N>
__global__ void finish_rows(const T *product, const T *bias, T *before, T *out, int64_t packs,
                            int64_t columns, Activation activation)
{
    using C = compute_type<T>;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < packs;
         i += (int64_t)gridDim.x * blockDim.x) {
        Pack<T, N> pack = {}, added = {};
        if (product) pack = load_pack<N>(product + i * N);
        if (bias) added = load_pack<N>(bias + i * N % columns);
        YOKE_UNROLL
        for (int k = 0; k < N && bias; k++)
            pack.at[k] = store<T>((C)(load<T>(pack.at[k]) + load<T>(added.at[k])));
        if (before != out && (before != product || bias)) store_pack<N>(before + i * N, pack);
        YOKE_UNROLL
        for (int k = 0; k < N; k++) pack.at[k] = activate(pack.at[k], activation);
        store_pack<N>(out + i * N, pack);
    }
}

// Work after the product: the product, its bias, and the results; all row-major.
struct Rest {
    const void *product, *bias;
    void *before, *out;
    int64_t rows, columns;
    Activation activation;
};

template <class T, int N>
static yoke_status finish_in_packs(const yoke_launch *launch, const Rest &rest)
{
    const int threads = block_size(kThreads);
    const int64_t packs = rest.rows * rest.columns / N;
    return start(launch, finish_rows<T, N>, {blocks_for(launch, packs, threads), threads},
                 (const T *)rest.product, (const T *)rest.bias, (T *)rest.before, (T *)rest.out,
                 packs, rest.columns, rest.activation);
}

static yoke_status finish(const yoke_launch *launch, yoke_dtype dtype, const Rest &rest)
{
    return for_float(launch, "x", dtype, [&]<class T>() {
        constexpr int N = kPackLength<T>;
        bool packed = rest.columns % N == 0;
        for (const void *p :
             {rest.product, rest.bias, (const void *)rest.before, (const void *)rest.out})
            packed = packed && is_aligned(p, 16);
        return packed ? finish_in_packs<T, N>(launch, rest) : finish_in_packs<T, 1>(launch, rest);
    });
}

// ---- the product ----------------------------------------------------------------------------------------------------

// Operands as one product, copied where need be.
class Linear {
public:
    Linear(const yoke_launch *launch, Activation activation, void *before)
        : launch_(launch),
          out_(launch->operands[3]),
          before_(before),
          activation_(activation),
          x_(launch),
          weight_(launch),
          bias_(launch),
          result_(launch)
    {
    }

    yoke_status run()
    {
        yoke_status status = prepare();
        if (!status) status = p_.k ? multiply() : finish_product(nullptr, p_.bias);
        if (status || is_contiguous(out_)) return status;
        return copy_operand(launch_, out_, result_.operand());
    }

private:
    yoke_status prepare();
    yoke_status multiply();
    yoke_status attempt(const Gemm &gemm, bool *done);
    yoke_status finish_product(const void *product, const void *bias);
    bool is_one_product(const yoke_operand &x, const yoke_operand &weight, const yoke_operand &out);

    const yoke_launch *launch_;
    const yoke_operand &out_;
    void *before_;  // null if not needed
    const Activation activation_;
    Dense x_, weight_, bias_, result_;
    Product p_ = {};
};

// Returns whether rows of x have an equal distance, so a single product of matrices suffices. This product becomes
// p_.
bool Linear::is_one_product(const yoke_operand &x, const yoke_operand &weight,
                            const yoke_operand &out)
{
    int64_t count = 0;
    Loop<3> loop;
    yoke_operand matrix = weight;
    plan_batches(loop, out, x, matrix);
    (void)run_batches(loop, linear_product(x, weight, out), [&](const Product &each) {
        p_ = each;
        return ++count > 1 ? (yoke_status)YOKE_E_UNSUPPORTED : (yoke_status)YOKE_OK;
    });
    return count == 1 && p_.batch == 1 && cublaslt_takes(p_.a, p_.m, p_.k);
}

yoke_status Linear::prepare()
{
    const yoke_operand &x = launch_->operands[0], &bias = launch_->operands[2];
    const yoke_operand *weight = &launch_->operands[1], *out = &out_;
    yoke_status status = YOKE_OK;
    if (!is_contiguous(out_)) {
        status = result_.reserve(out_.shape, out_.ndim, out_.dtype);
        out = &result_.operand();
    }
    const kernels::Matrix rows = {nullptr, 0, weight->strides[0], weight->strides[1]};
    if (!status && !cublaslt_takes(rows, weight->shape[0], weight->shape[1])) {
        status = weight_.copy(*weight, weight->shape, weight->ndim);
        weight = &weight_.operand();
    }
    if (!status && !is_one_product(x, *weight, *out)) {
        status = x_.copy(x, x.shape, x.ndim);
        if (!status) is_one_product(x_.operand(), *weight, *out);
    }
    if (status || !is_present(bias)) return status;
    p_.bias = bias.data;
    if (is_contiguous(bias) && is_aligned(bias.data, 16)) return YOKE_OK;
    status = bias_.copy(bias, bias.shape, bias.ndim);
    p_.bias = bias_.operand().data;
    return status;
}

yoke_status Linear::attempt(const Gemm &gemm, bool *done)
{
    // cuBLASLt writes the activation's argument in rows of whole 16 bytes.
    const bool takes = !gemm.before || (p_.n % 8 == 0 && is_aligned(gemm.before, 16));
    return takes ? cublaslt_multiply(launch_, gemm, done) : YOKE_OK;
}

yoke_status Linear::finish_product(const void *product, const void *bias)
{
    return finish(
        launch_, p_.dtype,
        {product, bias, before_ ? before_ : p_.c.data, p_.c.data, p_.m, p_.n, activation_});
}

yoke_status Linear::multiply()
{
    bool done = false;
    yoke_status status = attempt({p_, activation_, before_}, &done);
    if (status || done) return status;
    Product left = p_;  // the rest of the product, if a separate pass does part of the work
    if (before_) left.c.data = before_;
    if (activation_ != Activation::kNone) {
        status = attempt({left}, &done);
        if (status) return status;
        if (done) return finish_product(left.c.data, nullptr);
    }
    left.bias = nullptr;
    status = attempt({left}, &done);
    if (status) return status;
    if (done) return finish_product(left.c.data, p_.bias);
    return fail(YOKE_E_UNSUPPORTED, 0,
                "%s: cuBLASLt has no algorithm for %lld x %lld by %lld x %lld matrices of %s",
                op_name(launch_->op), (long long)p_.m, (long long)p_.k, (long long)p_.k,
                (long long)p_.n, dtype_name(p_.dtype));
}

static yoke_status run_linear(const yoke_launch *launch, Activation activation,
                              void *before = nullptr)
{
    const yoke_operand *o = launch->operands;
    for (int i = 1; i < 3; i++)
        if (is_present(o[i]) && o[i].dtype != o[0].dtype)
            return bad_dtype(launch, i == 1 ? "weight" : "bias", o[i].dtype);
    if (o[3].numel == 0) return YOKE_OK;
    return Linear(launch, activation, before).run();
}

YOKE_KERNEL(_linear)
{
    return run_linear(launch, Activation::kNone);
}

YOKE_KERNEL(_linear_relu)
{
    return run_linear(launch, Activation::kRelu);
}

// If the gradient needs the activation's input, it is the last operand; else this operand is empty.
YOKE_KERNEL(_linear_act)
{
    const yoke_operand &kept = launch->operands[4];
    const Activation activation = kernels::activation_named(launch->params[0]);
    return run_linear(launch, activation, kept.numel ? kept.data : nullptr);
}

YOKE_CUDA_END
