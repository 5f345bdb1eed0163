// structs.h: structs that cross the C API and may grow: each begins with uint32_t struct_size, set by the caller.
#pragma once

#include "capi/src/guard.h"

#include <algorithm>
#include <cstring>

namespace yoke::capi {

// Raises YOKE_E_VALUE for an impossible size, before the code reads anything behind the pointer.
inline void check_struct_size(uint32_t size, size_t known, const char *call, const char *argument)
{
    // Far above any struct to come, far below what an uninitialised field tends to hold.
    constexpr uint32_t kLargest = 4096;
    if (size < sizeof(uint32_t) || size > kLargest)
        fail(
            YOKE_E_VALUE,
            "%s: struct_size of argument '%s' is %u; it must be the struct's sizeof, %zu in this version",
            short_name(call), argument, size, known);
}

// Copies the caller's struct to the library's size. Missing fields are zero; unknown fields must be zero.
template <class T>
T read_struct(const T *theirs, const char *call, const char *argument)
{
    const uint32_t size = need(theirs, call, argument).struct_size;
    check_struct_size(size, sizeof(T), call, argument);
    const auto *bytes = reinterpret_cast<const unsigned char *>(theirs);
    for (size_t i = sizeof(T); i < size; ++i)
        if (bytes[i])
            fail(
                YOKE_E_UNSUPPORTED,
                "%s: argument '%s' has %u bytes and sets byte %zu, but this version supports only the first %zu; use a newer libyoke",
                short_name(call), argument, size, i, sizeof(T));
    T ours{};
    // If the size ends within a field (no version had such a size), no half pointer is copied.
    const size_t whole = size / alignof(T) * alignof(T);
    std::memcpy(&ours, bytes, std::min(whole, sizeof(T)));
    ours.struct_size = sizeof(T);
    return ours;
}

// Copies the library's struct to the caller's size, and leaves the caller's struct_size; an unknown tail becomes
// zero.
template <class T>
void write_struct(T *theirs, const T &ours, const char *call, const char *argument)
{
    const uint32_t size = need(theirs, call, argument).struct_size;
    check_struct_size(size, sizeof(T), call, argument);
    auto *bytes = reinterpret_cast<unsigned char *>(theirs);
    const size_t common = std::min<size_t>(size, sizeof(T));
    std::memcpy(bytes, &ours, common);
    if (size > common) std::memset(bytes + common, 0, size - common);
    std::memcpy(bytes, &size, sizeof size);
}

}  // namespace yoke::capi
