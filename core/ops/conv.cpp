// conv.cpp: convolution and its transpose: checks, shape rules and vjps.
//
// Three internal ops serve all calls: _conv, and its gradients by data and by weight; the transpose is the gradient
// by data. Their data lies NHWC; weights stay [out, in / groups, height, width].
#include "core/ops/window.h"

#include <algorithm>

namespace yoke {

namespace {

// Arguments of a call. conv1d is conv2d of a single row: the height is 1.
struct Given {
    const char *call;
    const yoke_tensor &x, &weight;
    const yoke_tensor *bias;
    int axes;  // axes of the window
    Pair stride, padding, dilation;
    int64_t groups;
    bool is_transposed = false;

    bool is_batched() const { return x.ndim == axes + 2; }
    int64_t x_channels() const { return x.shape_[x.ndim - axes - 1]; }
    // Returns height and width of a tensor; the height is 1 for conv1d.
    Pair sizes_of(const yoke_tensor &t) const
    {
        return {axes == 2 ? t.shape_[t.ndim - 2] : 1, t.shape_[t.ndim - 1]};
    }
    // Returns, as text, the part of a pair that the caller gave.
    std::string told(const Pair &pair) const
    {
        return to_string(IntList(pair).last(static_cast<size_t>(axes)));
    }
};

void check_dtypes(const Given &g)
{
    check_computable(g.x, g.call, "x");
    if (g.weight.dtype != g.x.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s, but 'weight' is %s; cast one of them first",
             g.call, name(g.x.dtype), name(g.weight.dtype));
    if (g.bias && g.bias->dtype != g.x.dtype)
        fail(YOKE_E_TYPE, "%s: argument 'x' is %s, but 'bias' is %s; cast one of them first",
             g.call, name(g.x.dtype), name(g.bias->dtype));
}

void check_ranks(const Given &g)
{
    if (g.x.ndim != g.axes + 1 && g.x.ndim != g.axes + 2)
        fail(YOKE_E_VALUE, "%s: argument 'x' has shape %s; it must be %s", g.call,
             to_string(g.x.shape()).c_str(),
             g.axes == 1 ? "[N, C, L], or [C, L]" : "[N, C, H, W], or [C, H, W]");
    if (g.weight.ndim != g.axes + 2)
        fail(YOKE_E_VALUE, "%s: argument 'weight' has shape %s; it must be %s", g.call,
             to_string(g.weight.shape()).c_str(),
             g.is_transposed ? "[in, out / groups, height, width]"
             : g.axes == 1   ? "[out, in / groups, size]"
                             : "[out, in / groups, height, width]");
    const Pair kernel = g.sizes_of(g.weight);
    if (kernel[0] < 1 || kernel[1] < 1)
        fail(YOKE_E_VALUE,
             "%s: argument 'weight' has shape %s; its window must have at least 1 element", g.call,
             to_string(g.weight.shape()).c_str());
}

void check_groups(const Given &g)
{
    if (g.groups < 1)
        fail(YOKE_E_VALUE, "%s: argument 'groups' is %lld; it must be at least 1", g.call,
             static_cast<long long>(g.groups));
    if (const int64_t first = g.weight.shape_[0]; first % g.groups)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'groups' is %lld; it must divide the %lld %s channels of 'weight' of shape %s",
            g.call, static_cast<long long>(g.groups), static_cast<long long>(first),
            g.is_transposed ? "input" : "output", to_string(g.weight.shape()).c_str());
}

void check_channels(const Given &g)
{
    const int64_t channels = g.x_channels();
    int64_t taken = g.weight.shape_[0];
    if (!g.is_transposed && __builtin_mul_overflow(g.weight.shape_[1], g.groups, &taken))
        taken = -1;
    if (channels == taken) return;
    fail(
        YOKE_E_VALUE,
        "%s: argument 'x' of shape %s has %lld channels, but 'weight' of shape %s takes %s in %lld group(s); they must agree (x is [N, C, H, W], and weight [%s, H, W])",
        g.call, to_string(g.x.shape()).c_str(), static_cast<long long>(channels),
        to_string(g.weight.shape()).c_str(),
        taken < 0 ? "more than memory holds" : std::to_string(taken).c_str(),
        static_cast<long long>(g.groups),
        g.is_transposed ? "in, out / groups" : "out, in / groups");
}

int64_t out_channels(const Given &g)
{
    if (!g.is_transposed) return g.weight.shape_[0];
    int64_t channels;
    if (__builtin_mul_overflow(g.weight.shape_[1], g.groups, &channels))
        fail(
            YOKE_E_VALUE,
            "%s: argument 'groups' is %lld; it must be smaller, because 'weight' of shape %s has %lld output channels for each group, which together exceed 64 bits",
            g.call, static_cast<long long>(g.groups), to_string(g.weight.shape()).c_str(),
            static_cast<long long>(g.weight.shape_[1]));
    return channels;
}

void check_bias(const Given &g, int64_t channels)
{
    if (!g.bias || same(g.bias->shape(), Dims{channels})) return;
    fail(
        YOKE_E_VALUE,
        "%s: argument 'bias' has shape %s; for a 'weight' of shape %s in %lld group(s) it must be [%lld]",
        g.call, to_string(g.bias->shape()).c_str(), to_string(g.weight.shape()).c_str(),
        static_cast<long long>(g.groups), static_cast<long long>(channels));
}

[[noreturn]] void fail_overflow(const Given &g)
{
    fail(
        YOKE_E_VALUE,
        "%s: argument 'x' has shape %s, which with 'weight' of shape %s, stride %s, padding %s and dilation %s gives sizes beyond 64 bits; use smaller numbers",
        g.call, to_string(g.x.shape()).c_str(), to_string(g.weight.shape()).c_str(),
        g.told(g.stride).c_str(), g.told(g.padding).c_str(), g.told(g.dilation).c_str());
}

// Returns the output size. Raises YOKE_E_VALUE unless the padded input holds the window's span.
Pair slide(const Given &g)
{
    const Pair from = g.sizes_of(g.x), kernel = g.sizes_of(g.weight);
    Pair span, padded, out;
    for (size_t i = 0; i < 2; ++i)
        if (!window_span(kernel[i], g.dilation[i], span[i]) ||
            !multiply_add(g.padding[i], 2, from[i], padded[i]))
            fail_overflow(g);
    if (span[0] > padded[0] || span[1] > padded[1])
        fail(
            YOKE_E_VALUE,
            "%s: argument 'weight' has shape %s, with dilation %s a window of %s, but 'x' of shape %s with padding %s has only %s; use a smaller window or more padding",
            g.call, to_string(g.weight.shape()).c_str(), g.told(g.dilation).c_str(),
            g.told(span).c_str(), to_string(g.x.shape()).c_str(), g.told(g.padding).c_str(),
            g.told(padded).c_str());
    for (size_t i = 0; i < 2; ++i) out[i] = (padded[i] - span[i]) / g.stride[i] + 1;
    return out;
}

// Returns the height and width from which a convolution makes x: the size of the transpose's result. Raises
// YOKE_E_VALUE if a size is below 1 or overflows.
Pair unslide(const Given &g, const Pair &more)
{
    const Pair from = g.sizes_of(g.x), kernel = g.sizes_of(g.weight);
    Pair out;
    for (size_t i = 0; i < 2; ++i) {
        int64_t span, grown, padded;
        if (!window_span(kernel[i], g.dilation[i], span) ||
            !multiply_add(from[i] - 1, g.stride[i], span, grown) ||
            !multiply_add(1, grown, more[i], grown) || !multiply_add(g.padding[i], 2, 0, padded) ||
            !multiply_add(padded, -1, grown, out[i]))
            fail_overflow(g);
    }
    if (from[0] < 1 || from[1] < 1 || out[0] < 1 || out[1] < 1)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'x' has shape %s, which with padding %s gives a result of %s; height and width of both must be at least 1",
            g.call, to_string(g.x.shape()).c_str(), g.told(g.padding).c_str(), g.told(out).c_str());
    return out;
}

void check_output_padding(const Given &g, const Pair &more)
{
    if (more[0] < std::max(g.stride[0], g.dilation[0]) &&
        more[1] < std::max(g.stride[1], g.dilation[1]))
        return;
    fail(
        YOKE_E_VALUE,
        "%s: argument 'output_padding' is %s; it must be below 'stride' %s or below 'dilation' %s, in each axis",
        g.call, g.told(more).c_str(), g.told(g.stride).c_str(), g.told(g.dilation).c_str());
}

// Appends zeros to x, a zero for each whole stride in output_padding. The zeros add nothing to the sums. The op is
// the gradient of a convolution, and this convolution has a place for each zero.
Tensor lengthened(const Given &g, const Pair &more)
{
    const int64_t down = more[0] / g.stride[0], across = more[1] / g.stride[1];
    if (down == 0 && across == 0) return Tensor::share(const_cast<yoke_tensor *>(&g.x));
    return ops::pad(g.x, Dims{0, across, 0, down});
}

// Returns the window sliding over a given height and width.
Dims window_of(const Given &g, const Pair &size)
{
    return settled_window(g.sizes_of(g.weight), size, g.stride, g.padding, g.dilation);
}

// Returns x as [N, C, H, W] that lies NHWC.
Tensor batched(const Given &g, const yoke_tensor &given)
{
    Tensor x = Tensor::share(const_cast<yoke_tensor *>(&given));
    if (!g.is_batched()) x = ops::unsqueeze(x, 0);
    if (g.axes == 1) x = ops::unsqueeze(x, 2);
    return channels_last(x);
}

Tensor unbatched(const Given &g, Tensor out)
{
    if (g.axes == 1) out = ops::squeeze(out, 2);
    return g.is_batched() ? std::move(out) : ops::squeeze(out, 0);
}

Tensor kernel_of(const Given &g)
{
    const Tensor weight = ops::contiguous(g.weight);
    return g.axes == 1 ? ops::unsqueeze(weight, 2) : weight;
}

void check_call(const Given &g)
{
    check_dtypes(g);
    check_ranks(g);
    check_groups(g);
    check_channels(g);
    check_bias(g, out_channels(g));
}

// Raises YOKE_E_VALUE if the result of this height and width is larger than memory can address.
void check_size(const Given &g, const Pair &size)
{
    checked_numel(Dims{g.is_batched() ? g.x.shape_[0] : 1, out_channels(g), size[0], size[1]},
                  g.call);
}

Tensor convolve(const Given &g)
{
    check_call(g);
    check_size(g, slide(g));
    const Tensor bias = g.bias ? ops::contiguous(*g.bias) : Tensor();
    return unbatched(g, ops::conv(batched(g, g.x), kernel_of(g), bias.get(),
                                  window_of(g, g.sizes_of(g.x)), g.groups));
}

// ---- shape rules --------------------------------------------------------------------------------------------

int64_t slid(int64_t size, int64_t kernel, const IntList &window, size_t axis)
{
    const int64_t span = window[4 + axis] * (kernel - 1) + 1;
    return (size + 2 * window[2 + axis] - span) / window[axis] + 1;
}

void plan_nhwc(Plan &plan, const Dims &shape, yoke_dtype dtype)
{
    plan.result(shape, dtype, nhwc_strides(shape).data());
}

// Plans the work: a multiplication and an addition for each element of the weight at each place of the window.
void plan_work(Plan &plan, const yoke_tensor &weight_like, double places)
{
    plan.work(2.0 * places * static_cast<double>(weight_like.numel));
}

double places_of(const yoke_tensor &out)
{
    return static_cast<double>(out.shape_[0]) * static_cast<double>(out.shape_[2]) *
           static_cast<double>(out.shape_[3]);
}

Tensor bias_gradient(const Tensor &grad)
{
    constexpr int64_t kAll[] = {0, 2, 3};
    return ops::sum(grad, IntList(kAll));
}

}  // namespace

Tensor compose_conv1d(Conv1dArgs a)
{
    const auto pair = [&](const char *arg, int64_t given, int64_t absent, int64_t least) {
        return Pair{absent, pair_of("conv1d", arg, IntList(&given, 1), absent, least)[0]};
    };
    return convolve({"conv1d", a.x(), a.weight(), a.bias(), 1, pair("stride", a.stride(), 1, 1),
                     pair("padding", a.padding(), 0, 0), pair("dilation", a.dilation(), 1, 1),
                     a.groups()});
}

Tensor compose_conv2d(Conv2dArgs a)
{
    constexpr const char *kCall = "conv2d";
    return convolve({kCall, a.x(), a.weight(), a.bias(), 2,
                     pair_of(kCall, "stride", a.stride(), 1, 1),
                     pair_of(kCall, "padding", a.padding(), 0, 0),
                     pair_of(kCall, "dilation", a.dilation(), 1, 1), a.groups()});
}

Tensor compose_conv_transpose2d(ConvTranspose2dArgs a)
{
    constexpr const char *kCall = "conv_transpose2d";
    const Given g{kCall,
                  a.x(),
                  a.weight(),
                  a.bias(),
                  2,
                  pair_of(kCall, "stride", a.stride(), 1, 1),
                  pair_of(kCall, "padding", a.padding(), 0, 0),
                  pair_of(kCall, "dilation", a.dilation(), 1, 1),
                  a.groups(),
                  true};
    const Pair more = pair_of(kCall, "output_padding", a.output_padding(), 0, 0);
    check_call(g);
    check_output_padding(g, more);
    const Pair size = unslide(g, more);
    check_size(g, size);
    const Tensor bias = g.bias ? ops::contiguous(*g.bias) : Tensor(), x = lengthened(g, more);
    return unbatched(g, ops::conv_data(batched(g, *x), kernel_of(g), bias.get(), size,
                                       window_of(g, size), g.groups));
}

void infer_conv(ConvArgs a, Plan &plan)
{
    const yoke_tensor &x = a.x(), &weight = a.weight();
    const Dims shape{x.shape_[0], weight.shape_[0],
                     slid(x.shape_[2], weight.shape_[2], a.window(), 0),
                     slid(x.shape_[3], weight.shape_[3], a.window(), 1)};
    plan_nhwc(plan, shape, x.dtype);
    plan.work(2.0 * static_cast<double>(shape[0]) * static_cast<double>(shape[2] * shape[3]) *
              static_cast<double>(weight.numel));
}

void vjp_conv(ConvArgs a, Backward &b)
{
    const Tensor grad = channels_last(b.grad());
    const yoke_tensor &x = a.x(), &weight = a.weight();
    if (b.needs(a.kX))
        b.set(a.kX,
              ops::conv_data(grad, weight, nullptr, x.shape().last(2), a.window(), a.groups()));
    if (b.needs(a.kWeight))
        b.set(a.kWeight, ops::conv_weight(grad, x, weight.shape().last(2), a.window(), a.groups()));
    if (b.needs(a.kBias)) b.set(a.kBias, bias_gradient(grad));
}

void infer_conv_data(ConvDataArgs a, Plan &plan)
{
    const yoke_tensor &grad = a.grad(), &weight = a.weight();
    plan_work(plan, weight, places_of(grad));
    plan_nhwc(plan, {grad.shape_[0], weight.shape_[1] * a.groups(), a.size()[0], a.size()[1]},
              grad.dtype);
}

void vjp_conv_data(ConvDataArgs a, Backward &b)
{
    const Tensor grad = channels_last(b.grad());
    const yoke_tensor &weight = a.weight();
    if (b.needs(a.kGrad)) b.set(a.kGrad, ops::conv(grad, weight, nullptr, a.window(), a.groups()));
    if (b.needs(a.kWeight))
        b.set(a.kWeight,
              ops::conv_weight(a.grad(), grad, weight.shape().last(2), a.window(), a.groups()));
    if (b.needs(a.kBias)) b.set(a.kBias, bias_gradient(grad));
}

void infer_conv_weight(ConvWeightArgs a, Plan &plan)
{
    const yoke_tensor &grad = a.grad(), &x = a.x();
    const Dims shape{grad.shape_[1], x.shape_[1] / a.groups(), a.size()[0], a.size()[1]};
    plan.work(2.0 * places_of(grad) * static_cast<double>(checked_numel(shape, plan.name())));
    plan.result(shape, grad.dtype);
}

}  // namespace yoke
