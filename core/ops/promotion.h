// promotion.h: dtype of the result of two tensors, whose rule depends on a switch of the process.
#pragma once

#include "core/tensor/tensor.h"

#include <atomic>

namespace yoke {

namespace detail {
inline constinit std::atomic<bool> weak_zero_dim{false};
}  // namespace detail

// Sets whether a tensor without axes is weak beside a tensor with axes, as a script's number is.
inline void set_weak_zero_dim(bool weak) noexcept
{
    detail::weak_zero_dim.store(weak, std::memory_order_relaxed);
}

// Returns the dtype of the result of two tensors. A weak tensor without axes changes only a dtype of a lower class.
inline yoke_dtype promote_tensors(const yoke_tensor &a, const yoke_tensor &b)
{
    if ((a.ndim == 0) == (b.ndim == 0) || !detail::weak_zero_dim.load(std::memory_order_relaxed))
        [[likely]]
        return promote(a.dtype, b.dtype);
    const yoke_dtype weak = a.ndim == 0 ? a.dtype : b.dtype;
    const yoke_dtype strong = a.ndim == 0 ? b.dtype : a.dtype;
    return info(weak).kind >= info(strong).kind ? strong : promote(a.dtype, b.dtype);
}

}  // namespace yoke
