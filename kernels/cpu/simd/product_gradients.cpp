// The gradients of linear with respect to its weight and bias, as matmul and sum compute them.
#include "kernels/common/product_gradients.h"
#include "kernels/cpu/simd/copy.h"
#include "kernels/cpu/simd/product.h"

YOKE_SIMD_BEGIN

namespace entry {
yoke_status sum(const yoke_launch *launch);
}

using kernels::ProductGradients;

template <class To, class From>
static void add_to(const yoke_operand &sum, const From *product)
{
    To *to = data_of<To>(sum);
    parallel_range(sum.numel, kGrain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++)
            to[i] = store<To>(load<To>(to[i]) + load<From>(product[i]));
    });
}

// Computes a product in x's dtype apart from the weight's gradient, which is of another dtype or is added to.
static yoke_status multiply_apart(const yoke_launch *launch, const ProductGradients &g)
{
    Scratch scratch(launch);
    Product p = g.product();
    const auto bytes = (uint64_t)(g.weight.numel * dtype_size(p.dtype));
    if (yoke_status status = scratch.reserve(bytes)) return status;
    p.c.data = scratch.data();
    if (yoke_status status = compute(launch, p)) return status;
    if (!g.adds) {
        yoke_operand product = g.weight;
        product.data = scratch.data();
        product.dtype = p.dtype;
        return copy_operand(launch, g.weight, product);
    }
    return for_float(launch, "x", p.dtype, [&]<class T>() {
        const T *product = scratch.as<T>();
        g.weight.dtype == p.dtype ? add_to<T>(g.weight, product) : add_to<float>(g.weight, product);
        return (yoke_status)YOKE_OK;
    });
}

YOKE_KERNEL(_product_gradients)
{
    const ProductGradients g(launch);
    const bool apart = g.adds || g.weight.dtype != g.x.dtype;
    const yoke_status status = apart ? multiply_apart(launch, g) : compute(launch, g.product());
    if (status || !g.bias) return status;
    const kernels::SumOfRows rows(launch, g);
    return entry::sum(&rows.launch);
}

YOKE_SIMD_END
