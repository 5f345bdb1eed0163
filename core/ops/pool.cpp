// pool.cpp: pooling over height and width: checks, shape rules and vjps.
//
// x and the result are dense in one order, [N, C, H, W] or [N, H, W, C]: x's, or the former where it has neither.
#include "core/ops/window.h"

namespace yoke {

namespace {

// Arguments of a call.
struct Pooling {
    const char *call;
    const yoke_tensor &x;
    Pair kernel, stride, padding, dilation;
    bool rounds_up = false;

    Pair sizes() const { return {x.shape_[x.ndim - 2], x.shape_[x.ndim - 1]}; }
    Dims window() const { return settled_window(kernel, sizes(), stride, padding, dilation); }
};

void check_x(const char *call, const yoke_tensor &x)
{
    check_computable(x, call, "x");
    if (x.ndim != 3 && x.ndim != 4)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must be [N, C, H, W], or [C, H, W]",
             call, to_string(x.shape()).c_str());
    if (x.shape_[x.ndim - 2] < 1 || x.shape_[x.ndim - 1] < 1)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; its height and width must be at least 1",
             call, to_string(x.shape()).c_str());
}

void check_padding(const Pooling &p)
{
    if (p.padding[0] <= p.kernel[0] / 2 && p.padding[1] <= p.kernel[1] / 2) return;
    fail(YOKE_E_VALUE, "%s: argument 'padding' is %s; it must be at most half of 'kernel_size', %s",
         p.call, to_string(p.padding).c_str(), to_string(p.kernel).c_str());
}

// Raises YOKE_E_VALUE for a window with too many elements: the place of a maximum is a number of 32 bits.
void check_taps(const Pooling &p)
{
    constexpr int64_t kMost = INT32_MAX;
    if (p.kernel[0] <= kMost / p.kernel[1]) return;
    fail(YOKE_E_VALUE, "%s: argument 'kernel_size' is %s; a window must have at most %lld elements",
         p.call, to_string(p.kernel).c_str(), static_cast<long long>(kMost));
}

// Raises YOKE_E_VALUE if no window fits. With ceil_mode, the first window may exceed the end by less than a stride.
void check_fits(const Pooling &p, const Pair &span, const Pair &padded)
{
    const auto fits = [&](size_t i) {
        return span[i] <= padded[i] || (p.rounds_up && span[i] - padded[i] < p.stride[i]);
    };
    if (fits(0) && fits(1)) return;
    fail(
        YOKE_E_VALUE,
        "%s: argument 'kernel_size' is %s, a window of %s with dilation %s, but 'x' of shape %s with padding %s has only %s%s; use a smaller window",
        p.call, to_string(p.kernel).c_str(), to_string(span).c_str(), to_string(p.dilation).c_str(),
        to_string(p.x.shape()).c_str(), to_string(p.padding).c_str(), to_string(padded).c_str(),
        p.rounds_up
            ? (", which ceil_mode may exceed by less than the stride, " + to_string(p.stride))
                  .c_str()
            : "");
}

// Returns the height and width of the result. Raises YOKE_E_VALUE if no window fits.
Pair pooled(const Pooling &p)
{
    const Pair from = p.sizes();
    Pair span, padded, out;
    for (size_t i = 0; i < 2; ++i)
        if (!window_span(p.kernel[i], p.dilation[i], span[i]) ||
            !multiply_add(p.padding[i], 2, from[i], padded[i]))
            fail(
                YOKE_E_VALUE,
                "%s: argument 'x' has shape %s, which with kernel_size %s, padding %s and dilation %s gives sizes beyond 64 bits; use smaller numbers",
                p.call, to_string(p.x.shape()).c_str(), to_string(p.kernel).c_str(),
                to_string(p.padding).c_str(), to_string(p.dilation).c_str());
    check_fits(p, span, padded);
    for (size_t i = 0; i < 2; ++i) {
        const int64_t room = padded[i] - span[i], steps = room / p.stride[i];
        out[i] = steps + 1;
        // Adds a window for the rest, unless this window would begin in the padding.
        if (p.rounds_up && room > 0 && room % p.stride[i] &&
            steps * p.stride[i] < from[i] + p.padding[i] - p.stride[i])
            ++out[i];
    }
    return out;
}

Tensor unbatched(const yoke_tensor &x, Tensor out)
{
    return x.ndim == 4 ? std::move(out) : ops::squeeze(out, 0);
}

Pair given_kernel(const char *call, const IntList &kernel)
{
    return pair_of(call, "kernel_size", kernel, 0, 1);
}

}  // namespace

Tensor compose_max_pool2d(MaxPool2dArgs a)
{
    constexpr const char *kCall = "max_pool2d";
    check_x(kCall, a.x());
    const Pair kernel = given_kernel(kCall, a.kernel_size());
    Pooling p{kCall,
              a.x(),
              kernel,
              kernel,
              pair_of(kCall, "padding", a.padding(), 0, 0),
              pair_of(kCall, "dilation", a.dilation(), 1, 1),
              a.ceil_mode()};
    if (a.stride()) p.stride = pair_of(kCall, "stride", a.stride(), 1, 1);
    check_padding(p);
    check_taps(p);
    const Pair size = pooled(p);
    const bool keep = grad_enabled() && a.x().requires_grad();
    return unbatched(a.x(), ops::max_pool(dense_batch(a.x()), kernel, p.window(), size, keep));
}

Tensor compose_avg_pool2d(AvgPool2dArgs a)
{
    constexpr const char *kCall = "avg_pool2d";
    check_x(kCall, a.x());
    const Pair kernel = given_kernel(kCall, a.kernel_size());
    Pooling p{kCall,  a.x(),        kernel, kernel, pair_of(kCall, "padding", a.padding(), 0, 0),
              {1, 1}, a.ceil_mode()};
    if (a.stride()) p.stride = pair_of(kCall, "stride", a.stride(), 1, 1);
    check_padding(p);
    const std::optional<int64_t> divisor = a.divisor_override();
    if (divisor && *divisor < 1)
        fail(YOKE_E_VALUE, "%s: argument 'divisor_override' is %lld; it must be at least 1", kCall,
             static_cast<long long>(*divisor));
    const Pair size = pooled(p);
    return unbatched(a.x(), ops::avg_pool(dense_batch(a.x()), kernel, p.window(), size,
                                          a.count_include_pad(), divisor.value_or(0)));
}

Tensor compose_adaptive_avg_pool2d(AdaptiveAvgPool2dArgs a)
{
    constexpr const char *kCall = "adaptive_avg_pool2d";
    constexpr int64_t kAdaptive[] = {0, 0}, kWindow[] = {1, 1, 0, 0, 1, 1};
    check_x(kCall, a.x());
    const Pair size = pair_of(kCall, "output_size", a.output_size(), 0, 1);
    checked_numel(
        Dims{a.x().ndim == 4 ? a.x().shape_[0] : 1, a.x().shape_[a.x().ndim - 3], size[0], size[1]},
        kCall);
    return unbatched(a.x(), ops::avg_pool(dense_batch(a.x()), kAdaptive, kWindow, size, false, 0));
}

void infer_max_pool(MaxPoolArgs a, Plan &plan)
{
    constexpr int64_t kBytes = 256;  // taps whose numbers fit a byte
    const Dims shape = shape_of(a.x(), a.size());
    const yoke_dtype place = a.kernel()[0] <= kBytes / a.kernel()[1] ? YOKE_U8 : YOKE_I32;
    plan_in_order(plan, shape, a.x().dtype, goes_nhwc(a.x()));
    if (!a.keep()) return plan.result(Dims{0}, place);
    plan_in_order(plan, shape, place, goes_nhwc(a.x()));
}

void vjp_max_pool(MaxPoolArgs a, Backward &b)
{
    const bool is_nhwc = goes_nhwc(a.x());
    b.set(a.kX, ops::max_pool_backward(in_order(b.grad(), is_nhwc), b.out(1), a.kernel(),
                                       a.window(), a.x().shape().last(2), is_nhwc));
}

void infer_max_pool_backward(MaxPoolBackwardArgs a, Plan &plan)
{
    plan_in_order(plan, shape_of(a.grad(), a.size()), a.grad().dtype, a.channels_last());
}

void infer_avg_pool(AvgPoolArgs a, Plan &plan)
{
    plan_in_order(plan, shape_of(a.x(), a.size()), a.x().dtype, goes_nhwc(a.x()));
}

void vjp_avg_pool(AvgPoolArgs a, Backward &b)
{
    const bool is_nhwc = goes_nhwc(a.x());
    b.set(a.kX,
          ops::avg_pool_backward(in_order(b.grad(), is_nhwc), a.kernel(), a.window(),
                                 a.x().shape().last(2), a.include_pad(), a.divisor(), is_nhwc));
}

void infer_avg_pool_backward(AvgPoolBackwardArgs a, Plan &plan)
{
    plan_in_order(plan, shape_of(a.grad(), a.size()), a.grad().dtype, a.channels_last());
}

}  // namespace yoke
