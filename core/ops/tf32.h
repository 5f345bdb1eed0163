// tf32.h: process-wide switch: whether products of float32 may be rounded to TF32.
//
// Every launch record carries the switch (YOKE_LAUNCH_TF32), so a graph keeps the setting of its capture.
#pragma once

#include "core/backend/backend.h"
#include "core/base/config.h"
#include "core/base/thread_state.h"

namespace yoke {

namespace detail {
extern Switch tf32;
}  // namespace detail

// Returns the switch: at first the value of YOKE_ALLOW_TF32, else false. Raises YOKE_E_VALUE for an unreadable value.
inline bool allows_tf32()
{
    return detail::tf32.is_on();
}

// Sets the switch for launches of every thread from now on.
void allow_tf32(bool allowed) noexcept;

// Returns YOKE_LAUNCH_TF32 if a launch of the calling thread may round, else 0.
inline uint32_t tf32_flag()
{
    return thread_state().fits_tf32 || allows_tf32() ? YOKE_LAUNCH_TF32 : 0;
}

// Scope in which, if `fits`, the thread multiplies only numbers exact in TF32, so TF32 needs no permission.
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
