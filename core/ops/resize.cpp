// resize.cpp: other sizes of planes: interpolation, and channels that become pixels.
//
// As in poolings, x and the result of interpolate are dense in one order, [N, C, H, W] or [N, H, W, C].
#include "core/ops/scalar.h"
#include "core/ops/window.h"

#include <cmath>

namespace yoke {

namespace {

constexpr const char *kInterpolate = "interpolate";

enum class Mode { kNearest, kNearestExact, kLinear, kArea };

Mode mode_of(InterpolateArgs a)
{
    const std::string_view mode = a.mode();
    const bool is_line = a.x().ndim == 3;
    if (mode == "nearest") return Mode::kNearest;
    if (mode == "nearest-exact") return Mode::kNearestExact;
    if (mode == "area") return Mode::kArea;
    if (mode == (is_line ? "linear" : "bilinear")) return Mode::kLinear;
    fail(
        YOKE_E_VALUE,
        "%s: argument 'mode' is \"%s\"; for 'x' of shape %s it must be \"nearest\", \"nearest-exact\", \"%s\" or \"area\"",
        kInterpolate, std::string(mode).c_str(), to_string(a.x().shape()).c_str(),
        is_line ? "linear" : "bilinear");
}

void check_arguments(InterpolateArgs a)
{
    const yoke_tensor &x = a.x();
    check_computable(x, kInterpolate, "x");
    if (x.ndim != 3 && x.ndim != 4)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must be [N, C, H, W], or [N, C, L]",
             kInterpolate, to_string(x.shape()).c_str());
    for (const int64_t length : x.shape().last(static_cast<size_t>(x.ndim - 2)))
        if (length < 1)
            fail(YOKE_E_VALUE,
                 "%s: argument 'x' has shape %s; its axes behind C must have a length above 0",
                 kInterpolate, to_string(x.shape()).c_str());
    if (a.size().has_value() == a.scale_factor().has_value())
        fail(YOKE_E_VALUE,
             "%s: %s of the arguments 'size' and 'scale_factor' are given; give one of them",
             kInterpolate, a.size() ? "both" : "none");
    if (a.size() && a.recompute_scale_factor())
        fail(
            YOKE_E_VALUE,
            "%s: argument 'recompute_scale_factor' is true, but the size is given as %s; it must be false, or give 'scale_factor' in place of 'size'",
            kInterpolate, to_string(*a.size()).c_str());
    if (a.align_corners() && mode_of(a) != Mode::kLinear)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'align_corners' is true for mode \"%s\"; leave it out, or take \"bilinear\" or \"linear\"",
            kInterpolate, std::string(a.mode()).c_str());
}

// Raises YOKE_E_VALUE unless an argument has a number, or a number for each axis of x behind C.
void check_numbers(const yoke_tensor &x, size_t given, const char *arg)
{
    const auto count = static_cast<size_t>(x.ndim - 2);
    if (given == 1 || given == count) return;
    fail(YOKE_E_VALUE,
         "%s: argument '%s' has %zu numbers; for 'x' of shape %s it takes one, or %zu",
         kInterpolate, arg, given, to_string(x.shape()).c_str(), count);
}

// Returns the lengths of the result's axes behind C.
Dims given_lengths(InterpolateArgs a)
{
    const yoke_tensor &x = a.x();
    const IntList size = *a.size();
    const auto count = static_cast<size_t>(x.ndim - 2);
    check_numbers(x, size.size(), "size");
    Dims lengths;
    for (size_t i = 0; i < count; ++i) lengths.push_back(size.size() == 1 ? size[0] : size[i]);
    for (const int64_t length : lengths)
        if (length < 1)
            fail(YOKE_E_VALUE, "%s: argument 'size' is %s; it must be at least 1", kInterpolate,
                 to_string(size).c_str());
    return lengths;
}

// Returns the scale of the axis `i` of those behind C.
double scale_of(InterpolateArgs a, size_t i)
{
    const FloatList scales = *a.scale_factor();
    return scales.size() == 1 ? scales[0] : scales[i];
}

Dims scaled_lengths(InterpolateArgs a)
{
    check_numbers(a.x(), a.scale_factor()->size(), "scale_factor");
    Dims lengths;
    const IntList from = a.x().shape().last(static_cast<size_t>(a.x().ndim - 2));
    for (size_t i = 0; i < from.size(); ++i) {
        const double scale = scale_of(a, i);
        const double scaled = std::floor(static_cast<double>(from[i]) * scale);
        if (!(scaled >= 1 && scaled < 0x1p62))
            fail(
                YOKE_E_VALUE,
                "%s: argument 'scale_factor' is %g, which makes a size of %g from 'x' of shape %s; a size must be at least 1",
                kInterpolate, scale, scaled, to_string(a.x().shape()).c_str());
        lengths.push_back(static_cast<int64_t>(scaled));
    }
    return lengths;
}

// Returns how far a step of the result goes in x, along the axis `i` of those behind C. PyTorch rounds the step of
// "nearest" and "nearest-exact" to float32, and so the choice.
double step_of(InterpolateArgs a, Mode mode, size_t i, int64_t from, int64_t to)
{
    const bool is_rounded = mode != Mode::kLinear;
    const auto ratio = [is_rounded](double x, double y) {
        return is_rounded ? static_cast<double>(static_cast<float>(x) / static_cast<float>(y))
                          : x / y;
    };
    if (from == to) return 1;
    if (a.align_corners())
        return to > 1 ? ratio(static_cast<double>(from - 1), static_cast<double>(to - 1)) : 0;
    if (mode == Mode::kNearest && a.x().ndim == 4 && to % 2 == 0 && to / 2 == from) return 0.5;
    if (!a.scale_factor() || a.recompute_scale_factor())
        return ratio(static_cast<double>(from), static_cast<double>(to));
    const double step = 1 / scale_of(a, i);
    return is_rounded ? static_cast<double>(static_cast<float>(step)) : step;
}

// Raises YOKE_E_VALUE for a length that kernels cannot number by 32 bits.
void check_lengths(const Dims &size, IntList from)
{
    constexpr int64_t kMost = INT32_MAX;
    if (size[0] <= kMost && size[1] <= kMost && from[0] <= kMost && from[1] <= kMost) return;
    fail(YOKE_E_VALUE, "%s: a size of %s from %s; each must be at most %lld", kInterpolate,
         to_string(size).c_str(), to_string(from).c_str(), static_cast<long long>(kMost));
}

// Returns the factor of a shuffle, for planes that `is_split` in pieces. Raises YOKE_E_VALUE if x does not fit.
int64_t shuffle_factor(const char *call, const char *arg, const yoke_tensor &x, int64_t factor,
                       bool is_split)
{
    if (factor < 1)
        fail(YOKE_E_VALUE, "%s: argument '%s' is %lld; it must be at least 1", call, arg,
             static_cast<long long>(factor));
    const bool fits =
        x.ndim >= 3 && factor < (int64_t{1} << 31) &&
        (is_split ? x.shape_[x.ndim - 2] % factor == 0 && x.shape_[x.ndim - 1] % factor == 0
                  : x.shape_[x.ndim - 3] % (factor * factor) == 0);
    if (!fits)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; for '%s' %lld it must be %s", call,
             to_string(x.shape()).c_str(), arg, static_cast<long long>(factor),
             is_split ? "[..., C, H * r, W * r]" : "[..., C * r * r, H, W]");
    return factor;
}

// Returns x's outer axes, followed by `inner`.
Dims with_outer(const yoke_tensor &x, std::initializer_list<int64_t> inner)
{
    Dims shape(x.shape().first(static_cast<size_t>(x.ndim - 3)));
    for (const int64_t length : inner) shape.push_back(length);
    return shape;
}

// Exchanges axes behind x's outer axes, and gives the result its shape.
Tensor shuffled(const yoke_tensor &x, const Dims &apart, std::initializer_list<int64_t> order,
                const Dims &shape)
{
    Dims axes;
    for (int64_t axis = 0; axis < x.ndim - 3; ++axis) axes.push_back(axis);
    for (const int64_t axis : order) axes.push_back(x.ndim - 3 + axis);
    return ops::reshape(ops::permute(ops::reshape(x, apart), axes), shape);
}

}  // namespace

Tensor compose_interpolate(InterpolateArgs a)
{
    check_arguments(a);
    const Mode mode = mode_of(a);
    const yoke_tensor &x = a.x();
    Dims size = a.size() ? given_lengths(a) : scaled_lengths(a);
    if (x.ndim == 3) size.insert(0, 1);
    checked_numel(Dims{x.shape_[0], x.shape_[1], size[0], size[1]}, kInterpolate);
    const Tensor planes =
        x.ndim == 4 ? Tensor::share(const_cast<yoke_tensor *>(&x)) : ops::unsqueeze(x, 2);
    const IntList from = planes->shape().last(2);
    check_lengths(size, from);
    Tensor out;
    if (mode == Mode::kArea) {
        out = ops::adaptive_avg_pool2d(planes, size);
    } else {
        const double height = x.ndim == 4 ? step_of(a, mode, 0, from[0], size[0]) : 1;
        const double width = step_of(a, mode, static_cast<size_t>(x.ndim - 3), from[1], size[1]);
        out = ops::interpolate_internal(dense_batch(planes), size, height, width,
                                        mode == Mode::kLinear,
                                        a.align_corners() || mode == Mode::kNearestExact);
    }
    return x.ndim == 4 ? out : ops::squeeze(out, 2);
}

void infer_interpolate_internal(InterpolateInternalArgs a, Plan &plan)
{
    plan_in_order(plan, shape_of(a.x(), a.size()), a.x().dtype, goes_nhwc(a.x()));
}

void vjp_interpolate_internal(InterpolateInternalArgs a, Backward &b)
{
    const bool is_nhwc = goes_nhwc(a.x());
    b.set(a.kX, ops::interpolate_backward(in_order(b.grad(), is_nhwc), a.x().shape().last(2),
                                          a.step_height(), a.step_width(), a.linear(),
                                          a.align_corners(), is_nhwc));
}

void infer_interpolate_backward(InterpolateBackwardArgs a, Plan &plan)
{
    plan_in_order(plan, shape_of(a.grad(), a.size()), a.grad().dtype, a.channels_last());
}

Tensor compose_pixel_shuffle(PixelShuffleArgs a)
{
    const yoke_tensor &x = a.x();
    const int64_t r =
        shuffle_factor("pixel_shuffle", "upscale_factor", x, a.upscale_factor(), false);
    const int64_t c = x.shape_[x.ndim - 3] / (r * r), h = x.shape_[x.ndim - 2],
                  w = x.shape_[x.ndim - 1];
    return shuffled(x, with_outer(x, {c, r, r, h, w}), {0, 3, 1, 4, 2},
                    with_outer(x, {c, h * r, w * r}));
}

Tensor compose_pixel_unshuffle(PixelUnshuffleArgs a)
{
    const yoke_tensor &x = a.x();
    const int64_t r =
        shuffle_factor("pixel_unshuffle", "downscale_factor", x, a.downscale_factor(), true);
    const int64_t c = x.shape_[x.ndim - 3], h = x.shape_[x.ndim - 2] / r,
                  w = x.shape_[x.ndim - 1] / r;
    return shuffled(x, with_outer(x, {c, h, r, w, r}), {0, 2, 4, 1, 3},
                    with_outer(x, {c * r * r, h, w}));
}

}  // namespace yoke
