#include "core/ops/window.h"

namespace yoke {

Pair pair_of(const char *call, const char *arg, const std::optional<IntList> &given, int64_t absent,
             int64_t least)
{
    if (!given) return {absent, absent};
    const IntList list = *given;
    if (list.empty() || list.size() > 2)
        fail(YOKE_E_VALUE,
             "%s: argument '%s' has %zu numbers; give one, or two for height and width", call, arg,
             list.size());
    const Pair pair{list.front(), list.back()};
    if (pair[0] < least || pair[1] < least)
        fail(YOKE_E_VALUE, "%s: argument '%s' is %s; it must be at least %lld", call, arg,
             to_string(list).c_str(), static_cast<long long>(least));
    return pair;
}

Dims settled_window(const Pair &kernel, const Pair &size, const Pair &stride, const Pair &padding,
                    const Pair &dilation)
{
    Dims window{stride[0], stride[1], padding[0], padding[1], dilation[0], dilation[1]};
    for (size_t i = 0; i < 2; ++i) {
        window[i] = std::min(window[i], std::max<int64_t>(size[i] + 2 * padding[i], 1));
        if (kernel[i] == 1) window[4 + i] = 1;
    }
    return window;
}

Dims nhwc_strides(IntList shape)
{
    const int64_t c = std::max<int64_t>(shape[1], 1), w = std::max<int64_t>(shape[3], 1);
    return {std::max<int64_t>(shape[2], 1) * w * c, 1, w * c, c};
}

bool lies_nhwc(const yoke_tensor &x)
{
    const Dims strides = nhwc_strides(x.shape());
    for (int axis = 0; axis < x.ndim; ++axis)
        if (x.shape_[axis] > 1 && x.strides_[axis] != strides[axis]) return false;
    return true;
}

Tensor channels_last(const yoke_tensor &x)
{
    if (lies_nhwc(x)) return Tensor::share(const_cast<yoke_tensor *>(&x));
    constexpr int64_t kToLast[] = {0, 2, 3, 1}, kBack[] = {0, 3, 1, 2};
    return ops::permute(ops::clone(ops::permute(x, kToLast)), kBack);
}

bool goes_nhwc(const yoke_tensor &x)
{
    return lies_nhwc(x) && !x.contiguous;
}

Tensor dense_batch(const yoke_tensor &x)
{
    const Tensor all =
        x.ndim == 4 ? Tensor::share(const_cast<yoke_tensor *>(&x)) : ops::unsqueeze(x, 0);
    return lies_nhwc(*all) ? all : ops::contiguous(all);
}

Tensor in_order(const yoke_tensor &grad, bool is_nhwc)
{
    return is_nhwc ? channels_last(grad) : ops::contiguous(grad);
}

Dims shape_of(const yoke_tensor &like, const IntList &size)
{
    return {like.shape_[0], like.shape_[1], size[0], size[1]};
}

void plan_in_order(Plan &plan, const Dims &shape, yoke_dtype dtype, bool is_nhwc)
{
    plan.result(shape, dtype, is_nhwc ? nhwc_strides(shape).data() : nullptr);
}

}  // namespace yoke
