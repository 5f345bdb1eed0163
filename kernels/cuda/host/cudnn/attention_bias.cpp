#include "kernels/cuda/host/cudnn/attention_bias.h"

namespace yoke::cuda {

bool AttentionBias::needs_copy(int64_t keys) const
{
    const int last = mask_->ndim - 1;
    if (mask_->dtype == YOKE_BOOL) return true;
    if (keys > 1 && (mask_->shape[last] != keys || mask_->strides[last] != 1)) return true;
    for (int axis = 0; axis < last; ++axis)  // rows that overlap, or lie in descending order
        if (!is_shared(axis) && mask_->strides[axis] < keys) return true;
    return false;
}

bool AttentionBias::read(const yoke_operand &mask, yoke_dtype dtype, int64_t keys)
{
    if (mask.ndim < 2 || (mask.dtype != YOKE_BOOL && mask.dtype != dtype)) return false;
    mask_ = &mask;
    dtype_ = dtype;
    is_copied_ = needs_copy(keys);
    elements_ = 1;
    for (int axis = mask.ndim - 1; axis >= 0; --axis) {
        from_shape_[axis] = is_shared(axis) ? 1 : mask.shape[axis];
        to_shape_[axis] = axis == mask.ndim - 1 ? keys : from_shape_[axis];
        strides_[axis] = elements_;
        elements_ *= to_shape_[axis];
    }
    return true;
}

int64_t AttentionBias::stride(int axis, int ndim) const
{
    const int own = axis - (ndim - mask_->ndim);
    if (own < 0 || is_shared(own)) return 0;
    return is_copied_ ? strides_[own] : mask_->strides[own];
}

}  // namespace yoke::cuda
