// Questions of the fake CUDA libraries to the fake driver. No call of the driver is used for them: the driver would
// count such a call as a call of the module.
#pragma once

#include <dlfcn.h>

#include <atomic>

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

// Returns the runtime. Before the module has called the runtime, all functions in the result are null.
inline const fake_runtime &runtime()
{
    static const fake_runtime none{};
    static std::atomic<const fake_runtime *> known{nullptr};
    const fake_runtime *found = known.load(std::memory_order_relaxed);
    if (!found) {
        found = driver_symbol<const fake_runtime *>("fake_runtime_calls");
        known.store(found, std::memory_order_relaxed);
    }
    return found ? *found : none;
}

// Asks the driver, because the driver counts the calls of all fakes.
inline int fault_of(const char *call)
{
    static const auto ask = driver_symbol<decltype(&fake_fault)>("fake_fault");
    return ask ? ask(call) : 0;
}

}  // namespace yoke::fake
