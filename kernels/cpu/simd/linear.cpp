// linear, alone and with an activation. The activation is applied to a block of rows while the block is still in the
// caches.
#include "kernels/common/activation.h"
#include "kernels/common/named.h"
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/map.h"
#include "kernels/cpu/simd/product.h"

YOKE_SIMD_BEGIN

// Bytes of the result between two passes of the activation: a part of a last-level cache, yet so much that packing the
// weight again for each block costs little.
constexpr int64_t kBlockBytes = 4 << 20;
// An exp or an erf costs some ten additions.
constexpr int64_t kActivationGrain = 4096;

// Finds a dense bias for *out: the operand's own elements, or a copy if they have a stride.
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

// Computes x times the transpose of weight, plus bias, into out, by calls of run(product). Every form of linear
// begins with this.
template <class F>
static yoke_status run_linear(const yoke_launch *launch, const yoke_operand &out, const F &run)
{
    const yoke_operand &x = launch->operands[0], &weight = launch->operands[1];
    const yoke_operand &bias = launch->operands[2];
    if (yoke_status status = check_dtypes(launch)) return status;
    if (out.numel == 0) return YOKE_OK;
    Scratch scratch(launch);
    Product p = kernels::linear_product(x, weight, out);
    if (is_present(bias))
        if (yoke_status status = dense_bias(launch, bias, scratch, &p.bias)) return status;
    return run_batches(out, x, weight, p, run);
}

YOKE_KERNEL(_linear)
{
    return run_linear(launch, launch->operands[3],
                      [&](const Product &each) { return compute(launch, each); });
}

static void *moved(void *data, int64_t elements, int64_t size)
{
    return static_cast<char *>(data) + elements * size;
}

// Computes a product by blocks of rows, and calls done(first element, count) after each block. The result is
// row-major.
template <class F>
static yoke_status compute_blocks(const yoke_launch *launch, const Product &product, const F &done)
{
    int64_t size = dtype_size(product.dtype), rows = max(64, kBlockBytes / (product.n * size));
    for (int64_t i = 0; i < product.batch; i++)
        for (int64_t row = 0; row < product.m; row += rows) {
            Product p = product;
            p.batch = 1;
            p.m = min(rows, product.m - row);
            p.a.data = moved(p.a.data, i * p.a.batch_stride + row * p.a.row_stride, size);
            p.c.data = moved(p.c.data, i * p.c.batch_stride + row * p.c.row_stride, size);
            if (yoke_status status = compute(launch, p)) return status;
            done(p.c.data, p.m * p.n);
        }
    return YOKE_OK;
}

// Computes linear into `before`, and the activation into `out`; both are row-major, and may be the same tensor.
template <class T, class F>
static yoke_status activate(const yoke_launch *launch, const yoke_operand &out,
                            const yoke_operand &before)
{
    return run_linear(launch, before, [&](const Product &each) {
        return compute_blocks(launch, each, [&](const void *block, int64_t n) {
            int64_t first = static_cast<const T *>(block) - data_of<T>(before);
            parallel_range(n, kActivationGrain, [&](int64_t begin, int64_t end) {
                char *data[2] = {(char *)(data_of<T>(out) + first + begin),
                                 (char *)(data_of<T>(before) + first + begin)};
                const int64_t stride[2] = {sizeof(T), sizeof(T)};
                const yoke_dtype dtypes[2] = {out.dtype, out.dtype};
                map_run(make_map<T, T>(Stored<T, F>{}), dtypes, data, stride, end - begin);
            });
        });
    });
}

YOKE_KERNEL(_linear_relu)
{
    const yoke_operand &out = launch->operands[3];
    return for_float(launch, "x", out.dtype,
                     [&]<class T>() { return activate<T, kernels::Relu>(launch, out, out); });
}

// Computes linear and an activation. If the gradient needs the activation's input, the last operand gets this input;
// else this operand is empty.
YOKE_KERNEL(_linear_act)
{
    const yoke_operand &out = launch->operands[3], &kept = launch->operands[4];
    const yoke_operand &before = kept.numel ? kept : out;
    const auto activation = kernels::activation_named(launch->params[0]);
    return for_float(launch, "x", out.dtype, [&]<class T>() {
        switch (activation) {
            case kernels::Activation::kGelu:
                return activate<T, kernels::Gelu>(launch, out, before);
            case kernels::Activation::kSilu:
                return activate<T, kernels::Silu>(launch, out, before);
            default:
                return activate<T, kernels::GeluTanh>(launch, out, before);
        }
    });
}

YOKE_SIMD_END
