// matmul and linear: their shapes become products of matrices, which oneDNN or our own loops compute.
#include <cstring>

#include "kernels/common/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/multiply.h"

YOKE_SIMD_BEGIN

// Below this many multiplications oneDNN's set-up costs more than our own loops take.
constexpr int64_t kSmall = 16 * 16 * 16;

static yoke_status compute(const yoke_launch *launch, const Product &product)
{
    if (product.batch == 0 || product.m == 0 || product.n == 0) return YOKE_OK;
    bool done = false;
    if (product.k > 0 && product.batch * product.m * product.n * product.k > kSmall)
        if (yoke_status status = gemm_onednn(product, &done)) return status;
    return done ? YOKE_OK : multiply(launch, product);
}

// The same with rows of several matrices in one, where all share b: one product instead of a batch.
static void join_batch(Product &p)
{
    if (p.batch == 1 || p.b.batch_stride != 0) return;
    if (p.m == 1) {  // one row has no stride of its own
        p.a.row_stride = p.a.batch_stride;
        p.c.row_stride = p.c.batch_stride;
    }
    if (p.a.batch_stride != p.m * p.a.row_stride || p.c.batch_stride != p.m * p.c.row_stride)
        return;
    p.m *= p.batch;
    p.batch = 1;
}

static int64_t elements(int64_t bytes, yoke_dtype dtype)
{
    return bytes / dtype_size(dtype);
}

// The leading axes of out, x and y, of which the last `x_own` and `y_own` are the matrices' own.
static yoke_status run_batches(const yoke_launch *launch, const yoke_operand &out,
                               const yoke_operand &x, const yoke_operand &y, Product &product)
{
    int x_own = x.ndim > 1 ? 2 : 1, y_own = y.ndim > 1 ? 2 : 1;
    int ndim = out.ndim - (x_own - 1) - (y_own - 1);
    yoke_operand x_batch = x, y_batch = y;
    x_batch.ndim -= x_own;
    y_batch.ndim -= y_own;
    Loop<3> loop;
    loop.ndim = 0;
    loop.numel = 1;
    loop.data[0] = data_of<char>(out);
    loop.data[1] = data_of<char>(x);
    loop.data[2] = data_of<char>(y);
    int64_t size = dtype_size(out.dtype);
    for (int axis = ndim - 1; axis >= 0; axis--)
        add_axis<3>(
            loop, out.shape[axis],
            {out.strides[axis] * size, step_of(x_batch, axis, ndim), step_of(y_batch, axis, ndim)});
    finish_loop<3>(loop);
    if (loop.numel == 0) return YOKE_OK;
    product.batch = loop.shape[0];
    product.c.batch_stride = elements(loop.stride[0][0], out.dtype);
    product.a.batch_stride = elements(loop.stride[0][1], x.dtype);
    product.b.batch_stride = elements(loop.stride[0][2], y.dtype);
    int64_t outer = loop.numel / loop.shape[0];
    join_batch(product);
    for (int64_t i = 0; i < outer; i++) {
        Cursor<3> cursor(loop, i, 1);
        product.c.data = cursor.data[0];
        product.a.data = cursor.data[1];
        product.b.data = cursor.data[2];
        if (yoke_status status = compute(launch, product)) return status;
    }
    return YOKE_OK;
}

static yoke_status check_dtypes(const yoke_launch *launch)
{
    const yoke_operand *o = launch->operands;
    for (int i = 1; i < launch->operand_count; i++)
        if (is_present(o[i]) && o[i].dtype != o[0].dtype)
            return fail(YOKE_E_TYPE, "%s: x is %s but another argument is %s; cast one of them",
                        op_name(launch->op), dtype_name(o[0].dtype), dtype_name(o[i].dtype));
    return YOKE_OK;
}

YOKE_KERNEL(matmul)
{
    const yoke_operand &x = launch->operands[0], &y = launch->operands[1],
                       &out = launch->operands[2];
    if (yoke_status status = check_dtypes(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    const int64_t *xs = x.shape + x.ndim, *xt = x.strides + x.ndim;
    const int64_t *ys = y.shape + y.ndim, *yt = y.strides + y.ndim;
    const int64_t *ot = out.strides + out.ndim;
    Product p = {};
    p.dtype = out.dtype;
    p.m = x.ndim > 1 ? xs[-2] : 1;
    p.k = xs[-1];
    p.n = y.ndim > 1 ? ys[-1] : 1;
    p.a = {nullptr, 0, x.ndim > 1 ? xt[-2] : p.k, xt[-1]};
    p.b = {nullptr, 0, y.ndim > 1 ? yt[-2] : yt[-1], y.ndim > 1 ? yt[-1] : 1};
    // The result's axes: n last unless y is a vector, m before it unless x is one.
    p.c.column_stride = y.ndim > 1 ? ot[-1] : 1;
    p.c.row_stride = x.ndim > 1 ? ot[y.ndim > 1 ? -2 : -1] : p.n;
    return run_batches(launch, out, x, y, p);
}

// bias, dense: a view with a stride is copied first.
static yoke_status dense_bias(const yoke_launch *launch, const yoke_operand &bias, Scratch &scratch,
                              const void **out)
{
    *out = bias.data;
    if (bias.ndim == 0 || bias.numel <= 1 || bias.strides[0] == 1) return YOKE_OK;
    if (yoke_status status = scratch.reserve((uint64_t)(bias.numel * dtype_size(bias.dtype))))
        return status;
    const int64_t unit = 1;
    yoke_operand dense = bias;
    dense.data = scratch.data();
    dense.strides = &unit;
    *out = dense.data;
    return copy_operand(launch, dense, bias);
}

// x times the transpose of weight, plus bias, into out: what every form of linear begins with.
static yoke_status run_linear(const yoke_launch *launch, const yoke_operand &out)
{
    const yoke_operand &x = launch->operands[0], &weight = launch->operands[1];
    const yoke_operand &bias = launch->operands[2];
    if (yoke_status status = check_dtypes(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    Scratch scratch(launch);
    Product p = {};
    p.dtype = out.dtype;
    p.m = x.ndim > 1 ? x.shape[x.ndim - 2] : 1;
    p.k = weight.shape[1];
    p.n = weight.shape[0];
    p.a = {nullptr, 0, x.ndim > 1 ? x.strides[x.ndim - 2] : p.k, x.strides[x.ndim - 1]};
    p.b = {nullptr, 0, weight.strides[1], weight.strides[0]};
    p.c = {nullptr, 0, x.ndim > 1 ? out.strides[out.ndim - 2] : p.n, out.strides[out.ndim - 1]};
    if (is_present(bias))
        if (yoke_status status = dense_bias(launch, bias, scratch, &p.bias)) return status;
    return run_batches(launch, out, x, weight, p);
}

YOKE_KERNEL(_linear)
{
    return run_linear(launch, launch->operands[3]);
}

struct Silu {
    template <class T>
    YOKE_HD T operator()(T x) const
    {
        T bounded = kernels::select(x < (T)-90, (T)-90, x);
        return bounded / ((T)1 + kernels::exp(-bounded));
    }
};

// An exp costs some ten additions.
constexpr int64_t kActivationGrain = 4096;

template <class F>
static yoke_status activate(const yoke_launch *launch, const yoke_operand &out,
                            const yoke_operand &x, F f = F())
{
    return for_float(launch, "x", out.dtype, [&]<class T>() {
        return map<T, T>(out, x, Stored<T, F>{f}, kActivationGrain);
    });
}

YOKE_KERNEL(_linear_relu)
{
    const yoke_operand &out = launch->operands[3];
    if (yoke_status status = run_linear(launch, out)) return status;
    return activate<kernels::Relu>(launch, out, out);
}

// Where the gradient wants what the activation is applied to, that is the last operand, laid out as the result; else it
// is empty.
YOKE_KERNEL(_linear_act)
{
    const yoke_operand &out = launch->operands[3], &kept = launch->operands[4];
    const yoke_operand &before = kept.numel ? kept : out;
    const char *activation = launch->params[0].v.string;
    if (yoke_status status = run_linear(launch, before)) return status;
    if (strcmp(activation, "gelu") == 0) return activate<kernels::Gelu>(launch, out, before);
    if (strcmp(activation, "silu") == 0) return activate<Silu>(launch, out, before);
    return activate<kernels::GeluTanh>(launch, out, before);
}

YOKE_SIMD_END
