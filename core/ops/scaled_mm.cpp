// scaled_mm.cpp: products of matrices whose numbers were scaled to fit float8.
#include "core/autograd/node.h"
#include "core/ops/family.h"
#include "core/ops/tf32.h"

namespace yoke {

namespace {

constexpr const char *kScaledMm = "scaled_mm";

void check_matrices(const yoke_tensor &x, const yoke_tensor &y)
{
    check_floating(x, kScaledMm, "x");
    check_floating(y, kScaledMm, "y");
    if (x.ndim != 2 || y.ndim != 2 || x.shape_[1] != y.shape_[0])
        fail(YOKE_E_VALUE,
             "%s: argument 'x' has shape %s and 'y' %s; they must be [m, k] and [k, n]", kScaledMm,
             to_string(x.shape()).c_str(), to_string(y.shape()).c_str());
}

void check_scale(const yoke_tensor &scale, const char *arg)
{
    check_floating(scale, kScaledMm, arg);
    if (scale.numel != 1)
        fail(YOKE_E_VALUE,
             "%s: argument '%s' has shape %s; it must be one number for the whole matrix",
             kScaledMm, arg, to_string(scale.shape()).c_str());
}

bool is_float8(yoke_dtype dtype)
{
    return dtype == YOKE_F8_E4M3 || dtype == YOKE_F8_E5M2;
}

// Returns whether TF32 holds every value of the dtype: TF32 has float16's fraction bits and float32's range.
bool fits_tf32(yoke_dtype dtype)
{
    return is_float8(dtype) || dtype == YOKE_F16 || dtype == YOKE_BF16;
}

yoke_dtype result_dtype(const yoke_tensor &x, yoke_dtype asked)
{
    if (asked == YOKE_NONE) return is_float8(x.dtype) ? YOKE_BF16 : x.dtype;
    if (!is_floating(asked))
        fail(YOKE_E_TYPE, "%s: argument 'out_dtype' is %s; it takes a floating dtype", kScaledMm,
             name(asked));
    return asked;
}

}  // namespace

// Multiplies in float32, which holds every product of two float8 numbers; in float64 for a float64 x. Then multiplies
// by both scales, and casts. Tensor cores may be used if they multiply the same numbers.
Tensor compose_scaled_mm(ScaledMmArgs a)
{
    const yoke_tensor &x = a.x(), &y = a.y();
    check_matrices(x, y);
    check_scale(a.scale_x(), "scale_x");
    check_scale(a.scale_y(), "scale_y");
    const yoke_dtype dtype = result_dtype(x, a.out_dtype());
    const yoke_dtype wide = x.dtype == YOKE_F64 ? YOKE_F64 : YOKE_F32;
    const NoGrad no_grad;
    const NoAutocast as_given;
    const Tensor scale = ops::reshape(
        *ops::mul(*ops::cast(a.scale_x(), wide), *ops::cast(a.scale_y(), wide)), Dims{});
    const FitsTf32 both(fits_tf32(x.dtype) && fits_tf32(y.dtype));
    const Tensor product = ops::matmul(*ops::cast(x, wide), *ops::cast(y, wide));
    return ops::cast(*ops::mul(*product, *scale), dtype);
}

}  // namespace yoke
