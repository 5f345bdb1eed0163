// tf32.h: whether products of float32 may be rounded to TF32, for the whole process.
//
// Every launch record carries it (YOKE_LAUNCH_TF32), so that what a graph was captured with stays with the graph.
#pragma once

#include "core/backend/backend.h"
#include "core/base/config.h"
#include "core/base/thread_state.h"

namespace yoke {

namespace detail {
extern Switch tf32;
}  // namespace detail

// At first what YOKE_ALLOW_TF32 says, else false. Raises YOKE_E_VALUE for a value that cannot be read.
inline bool allows_tf32()
{
    return detail::tf32.is_on();
}

// For launches of every thread from now on.
void allow_tf32(bool allowed) noexcept;

// YOKE_LAUNCH_TF32 where a launch of the calling thread may round, else 0.
inline uint32_t tf32_flag()
{
    return thread_state().fits_tf32 || allows_tf32() ? YOKE_LAUNCH_TF32 : 0;
}

// While one that `fits` lives, its thread multiplies nothing but what TF32 holds exactly, and may use it unasked.
class FitsTf32 {
public:
    explicit FitsTf32(bool fits) : before_(thread_state().fits_tf32)
    {
        thread_state().fits_tf32 = before_ || fits;
    }
    ~FitsTf32() { thread_state().fits_tf32 = before_; }
    FitsTf32(const FitsTf32 &) = delete;
    FitsTf32 &operator=(const FitsTf32 &) = delete;

private:
    int32_t before_;
};

}  // namespace yoke
