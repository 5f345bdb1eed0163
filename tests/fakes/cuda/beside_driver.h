// What the fakes of CUDA's libraries ask of the fake driver beside them: not by a call of the driver, which would be
// counted as one of the module's.
#pragma once

#include <dlfcn.h>

#include "tests/fakes/cuda/fake.h"

namespace yoke::fake {

template <class Call>
Call driver_symbol(const char *name)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return library ? reinterpret_cast<Call>(dlsym(library, name)) : nullptr;
}

inline int current_device()
{
    static const auto get = driver_symbol<decltype(&fake_current_device)>("fake_current_device");
    return get ? get() : -1;
}

// The runtime; its functions are null before the module has called it.
inline const fake_runtime &runtime()
{
    static const fake_runtime none{};
    const auto found = driver_symbol<const fake_runtime *>("fake_runtime_calls");
    return found ? *found : none;
}

// Of the driver, which counts the calls of all fakes.
inline int fault_of(const char *call)
{
    static const auto ask = driver_symbol<decltype(&fake_fault)>("fake_fault");
    return ask ? ask(call) : 0;
}

}  // namespace yoke::fake
