// Mask of an attention launch as cuDNN's bias: numbers of the query's dtype, added to the scores.
//
// Contract
//  * Axes along which the mask is the same for all stay so: neither memory nor a copy is spent on them.
//  * A mask of numbers serves as it lies, if its keys are neighbours. Other masks are copied, bools as 0 and -infinity.
#pragma once

#include "core/backend/backend.h"

namespace yoke::cuda {

class AttentionBias {
public:
    // Reads the mask of a launch with `keys` keys and this dtype. Returns false if the mask has another dtype.
    bool read(const yoke_operand &mask, yoke_dtype dtype, int64_t keys);

    bool is_copied() const { return is_copied_; }
    // Returns how many elements the copy has.
    int64_t elements() const { return elements_; }
    // Returns the distance of neighbours in the bias along an axis of a query with `ndim` axes, in elements; 0 if they
    // have the same bias.
    int64_t stride(int axis, int ndim) const;
    // Calls copy(to, from) with the operands of the copy into memory at `data`.
    template <class F>
    yoke_status copy(void *data, const F &copy) const
    {
        yoke_operand from = *mask_, to = *mask_;
        from.shape = from_shape_;
        from.numel = elements_ / to_shape_[mask_->ndim - 1] * from_shape_[mask_->ndim - 1];
        to.shape = to_shape_;
        to.strides = strides_;
        to.numel = elements_;
        to.data = data;
        to.dtype = dtype_;
        from.flags &= ~YOKE_OPERAND_CONTIGUOUS;
        to.flags &= ~YOKE_OPERAND_CONTIGUOUS;
        return copy(to, from);
    }

private:
    bool is_shared(int axis) const { return mask_->shape[axis] == 1 || mask_->strides[axis] == 0; }
    bool needs_copy(int64_t keys) const;

    const yoke_operand *mask_ = nullptr;
    yoke_dtype dtype_ = 0;
    bool is_copied_ = false;
    int64_t elements_ = 0;
    int64_t from_shape_[YOKE_MAX_NDIM], to_shape_[YOKE_MAX_NDIM];  // shared axes have length 1
    int64_t strides_[YOKE_MAX_NDIM];                               // of the copy
};

}  // namespace yoke::cuda
