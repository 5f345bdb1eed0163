// simple.h: calls that return a single number from a key of a card.
#pragma once

#include "tests/fakes/edge/nvml/fake.h"

// nvmlDeviceGetX(device, &number): a key, times a factor.
#define YOKE_FAKE_NUMBER(call, type, key, factor)                                      \
    EXPORT int call(Handle *device, type *out)                                         \
    {                                                                                  \
        return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) { \
            return tell(gpu, key, out, factor);                                        \
        });                                                                            \
    }

// nvmlDeviceGetX(device, &number): a part of the key "link".
#define YOKE_FAKE_LINK(call, key, otherwise)                                            \
    EXPORT int call(Handle *device, uint *out)                                          \
    {                                                                                   \
        return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) {  \
            const Json link = gpu.keys.value("link", Json::object());                   \
            if (!link.contains(key) && !link.contains(otherwise)) return kNotSupported; \
            *out = link.value(key, link.value(otherwise, 0u));                          \
            return kSuccess;                                                            \
        });                                                                             \
    }

// nvmlDeviceGetX(device, text, length): a key.
#define YOKE_FAKE_TEXT(call, key)                                                      \
    EXPORT int call(Handle *device, char *out, uint length)                            \
    {                                                                                  \
        return on_gpu(__func__, device, {out}, [&](const Scenario &, const Gpu &gpu) { \
            if (!gpu.keys.contains(key)) return kNotSupported;                         \
            return tell_text(gpu.text(key), out, length);                              \
        });                                                                            \
    }
