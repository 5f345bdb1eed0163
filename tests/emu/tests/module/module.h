// The emulated module behind a host of the test's own, and the fakes behind the module.
#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/backend/backend.h"
#include "tests/fakes/cuda/fake.h"

namespace yoke::test {

// Returns the message of the calling thread's last failing call.
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
    // Returns a function that the fake driver exports.
    template <class Call>
    static Call fake(const char *name)
    {
        void *driver = dlopen(DRIVER_FOLDER "/libcuda.so.1", RTLD_NOW);
        return reinterpret_cast<Call>(dlsym(driver, name));
    }
    // Returns the held resources, "blocks=1 events=2", of the first `kinds` kinds in fake.h.
    static std::string held(int kinds = FAKE_KINDS)
    {
        static constexpr const char *kNames[FAKE_KINDS] = {
            "contexts", "pushed contexts", "blocks", "pinned blocks", "streams", "events",
            "ranges",   "chunks",          "maps",   "graphs",        "handles"};
        const auto count = fake<decltype(&fake_held)>("fake_held");
        std::string text;
        for (int kind = 0; kind < kinds; ++kind)
            if (const int n = count(kind))
                text +=
                    std::string(text.empty() ? "" : " ") + kNames[kind] + "=" + std::to_string(n);
        return text;
    }
    // Returns how often each call was made since the start or forget_calls().
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
    static bool is_lost() { return fake<decltype(&fake_lose)>("fake_lose")(0, 0) != 0; }
    static void forget_calls() { fake<decltype(&fake_reset)>("fake_reset")(); }
    // Returns the lines that the module has logged.
    static std::string &logged()
    {
        static std::string lines;
        return lines;
    }
    // Failures of the scratch functions' own calls, which no launch returns.
    static std::vector<Failure> &scratch_failures()
    {
        static std::vector<Failure> all;
        return all;
    }
    // During a capture, scratch memory stays, because the graph uses the memory at every launch. Afterwards the
    // memory is given back.
    static void keep_scratch() { is_keeping() = true; }
    static void give_scratch_back()
    {
        is_keeping() = false;
        for (const Kept &kept : std::exchange(kept_scratch(), {}))
            scratch_free(kept.device, kept.pointer, kept.stream);
    }

private:
    static yoke_status set_error(yoke_status status, int64_t, const char *message)
    {
        failure() = {status, message ? message : ""};
        return status;
    }
    static void log(int32_t, const char *line) { logged() += std::string(line) + "\n"; }
    static const char *config(const char *key) { return getenv(key); }
    static int32_t one_thread() { return 1; }

    static std::map<void *, uint64_t> &scratch()
    {
        static std::map<void *, uint64_t> sizes;
        return sizes;
    }
    static yoke_status scratch_alloc(void *device, uint64_t bytes, void *, uint32_t, void **out)
    {
        const yoke_status status = table()->alloc(device, bytes, out);
        if (status == YOKE_OK) scratch()[*out] = bytes;
        return status;
    }
    // There is no cache, and pending work may still use the block, so this call waits. A failed call is repeated.
    static void scratch_free(void *device, void *pointer, void *stream)
    {
        if (is_keeping()) return kept_scratch().push_back({device, pointer, stream});
        const Failure told = failure();
        const auto twice = [](const auto &call) {
            if (call() == YOKE_OK) return;
            if (is_lost()) return;  // resources of a lost device cannot be given back
            scratch_failures().push_back(failure());
            EXPECT_EQ(call(), YOKE_OK) << failure().message;
        };
        twice([&] { return table()->stream_synchronize(device, stream); });
        twice([&] { return table()->free(device, pointer, scratch()[pointer]); });
        scratch().erase(pointer);
        failure() = told;
    }
    struct Kept {
        void *device, *pointer, *stream;
    };
    static std::vector<Kept> &kept_scratch()
    {
        static std::vector<Kept> all;
        return all;
    }
    static bool &is_keeping()
    {
        static bool keeping = false;
        return keeping;
    }

    static constexpr yoke_host kHost = {
        sizeof(yoke_host), YOKE_BACKEND_ABI, set_error,   log, config,
        one_thread,        scratch_alloc,    scratch_free};
};

}  // namespace yoke::test
