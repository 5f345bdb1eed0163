// default_dtype.h: dtype of floating results that no argument states. A switch of the process, for scripts of other
// libraries.
#pragma once

#include "yoke/types.h"

#include <atomic>

namespace yoke {

namespace detail {
inline constinit std::atomic<yoke_dtype> default_dtype{YOKE_F32};
}  // namespace detail

// Returns float32, unless set_default_dtype() set another floating dtype.
inline yoke_dtype default_dtype() noexcept
{
    return detail::default_dtype.load(std::memory_order_relaxed);
}

inline void set_default_dtype(yoke_dtype dtype) noexcept
{
    detail::default_dtype.store(dtype, std::memory_order_relaxed);
}

}  // namespace yoke
