// The emulated module behind a host of the test's own, and the fakes behind the module.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::test {

// What the host was told by the calling thread's last failing call.
struct Failure {
    yoke_status status = YOKE_OK;
    std::string message;
};
inline Failure &failure()
{
    thread_local Failure last;
    return last;
}

class Module {
public:
    // Before the first call of CUDA: everything else is done by the calls.
    Module()
    {
        setenv("YOKE_CUDA_LIB_PATH", DRIVER_FOLDER, 1);
        void *library = dlopen(MODULE_FOLDER "/libyoke_cuda.so", RTLD_NOW | RTLD_LOCAL);
        EXPECT_NE(library, nullptr) << dlerror();
        const auto get = reinterpret_cast<yoke_backend_get_fn>(dlsym(library, YOKE_BACKEND_SYMBOL));
        EXPECT_EQ(get(&kHost, &table()), YOKE_OK);
    }
    static const yoke_backend *&table()
    {
        static const yoke_backend *only = nullptr;
        return only;
    }
    const yoke_backend *operator->() const { return table(); }

    static void *open()
    {
        void *device = nullptr;
        EXPECT_EQ(table()->device_open(0, &device), YOKE_OK) << failure().message;
        return device;
    }
    // A function that the fake driver exports.
    template <class Call>
    static Call fake(const char *name)
    {
        void *driver = dlopen(DRIVER_FOLDER "/libcuda.so.1", RTLD_NOW);
        return reinterpret_cast<Call>(dlsym(driver, name));
    }
    // What is held of all that must be given back: "blocks=1 events=2".
    static std::string held()
    {
        static constexpr const char *kNames[FAKE_KINDS] = {
            "contexts", "pushed contexts", "blocks", "pinned blocks", "streams", "events",
            "ranges",   "chunks",          "maps",   "graphs",        "handles"};
        const auto count = fake<decltype(&fake_held)>("fake_held");
        std::string text;
        for (int kind = 0; kind < FAKE_KINDS; ++kind)
            if (const int n = count(kind))
                text +=
                    std::string(text.empty() ? "" : " ") + kNames[kind] + "=" + std::to_string(n);
        return text;
    }
    // How often each call was made since the start or forget_calls().
    static std::map<std::string, int> calls()
    {
        std::map<std::string, int> counts;
        const std::string text = fake<decltype(&fake_calls)>("fake_calls")();
        for (size_t at = 0; at < text.size();) {
            const size_t is = text.find('=', at), end = std::min(text.find(',', at), text.size());
            counts[text.substr(at, is - at)] = atoi(text.c_str() + is + 1);
            at = end + 1;
        }
        return counts;
    }
    static void forget_calls() { fake<decltype(&fake_reset)>("fake_reset")(); }

private:
    static yoke_status set_error(yoke_status status, int64_t, const char *message)
    {
        failure() = {status, message ? message : ""};
        return status;
    }
    static void log(int32_t, const char *) {}
    static const char *config(const char *key) { return getenv(key); }
    static int32_t one_thread() { return 1; }

    static std::map<void *, uint64_t> &scratch()
    {
        static std::map<void *, uint64_t> sizes;
        return sizes;
    }
    static yoke_status scratch_alloc(void *device, uint64_t bytes, void *, void **out)
    {
        const yoke_status status = table()->alloc(device, bytes, out);
        if (status == YOKE_OK) scratch()[*out] = bytes;
        return status;
    }
    // As the core's allocator does, whatever a single call says.
    static void scratch_free(void *device, void *pointer, void *stream)
    {
        const Failure kept = failure();
        const uint64_t bytes = scratch()[pointer];
        for (int i = 0; i < 2; ++i)
            if (table()->stream_synchronize(device, stream) == YOKE_OK) break;
        for (int i = 0; i < 2; ++i)
            if (table()->free(device, pointer, bytes) == YOKE_OK) break;
        scratch().erase(pointer);
        failure() = kept;
    }

    static constexpr yoke_host kHost = {
        sizeof(yoke_host), YOKE_BACKEND_ABI, set_error,   log, config,
        one_thread,        scratch_alloc,    scratch_free};
};

}  // namespace yoke::test
