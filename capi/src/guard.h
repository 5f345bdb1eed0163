// guard.h: the one border between exceptions and status codes.
//
// Every function of the C API that can fail runs its body in guard(): whatever the core raises becomes a status, and its
// details become the calling thread's last error. Success touches neither. This is the only try/catch of the C API.
#pragma once

#include "core/base/error.h"
#include "core/base/shape.h"
#include "core/base/thread_state.h"
#include "core/device/device.h"

namespace yoke::capi {

// Called inside a catch block: stores the exception as the last error of `call` ("yoke_softmax") and returns its status.
__attribute__((cold, noinline)) yoke_status keep_exception(const char *call) noexcept;

template <class Body>
yoke_status guard(const char *call, Body &&body) noexcept
{
    try {
        thread_state();  // first of all: what follows may ask for it where nothing can be raised
        body();
        return YOKE_OK;
    } catch (...) {
        return keep_exception(call);
    }
}

// For functions that give their result directly: `missing` stands for a failure.
template <class T, class Body>
T guard_value(const char *call, T missing, Body &&body) noexcept
{
    try {
        thread_state();
        return body();
    } catch (...) {
        keep_exception(call);
        return missing;
    }
}

// The name of a call in messages: without the prefix that only C has.
inline const char *short_name(const char *call)
{
    return call + sizeof("yoke_") - 1;
}

[[noreturn]] __attribute__((cold, noinline)) void fail_null(const char *call, const char *argument);

// A handle or pointer that must be there.
template <class T>
T &need(T *pointer, const char *call, const char *argument)
{
    if (!pointer) [[unlikely]]
        fail_null(call, argument);
    return *pointer;
}

// An output: must be there, and is NULL until the call has succeeded.
template <class T>
T *&need_out(T **out, const char *call, const char *argument = "out")
{
    T *&place = need(out, call, argument);
    place = nullptr;
    return place;
}

// `count` items behind a pointer. Raises for a negative count, or none where there should be some.
__attribute__((cold)) void check_list(const void *items, int64_t count, const char *call,
                                      const char *argument);
template <class T>
std::span<T> need_list(T *items, int64_t count, const char *call, const char *argument)
{
    if (count < 0 || (count > 0 && !items)) [[unlikely]]
        check_list(items, count, call, argument);
    return {items, static_cast<size_t>(count)};
}

// The same for handles, none of which may be NULL.
std::span<yoke_tensor *const> need_tensors(yoke_tensor *const *items, int64_t count,
                                           const char *call, const char *argument);

inline Device &device_or_current(yoke_device *device)
{
    return device ? *device : current_device();
}

}  // namespace yoke::capi
