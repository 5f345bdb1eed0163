#include "kernels/cuda/host/nccl/library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/library.h"
#include "kernels/cuda/host/nccl/aside.h"

namespace yoke::cuda::nccl {

namespace {

#define YOKE_NCCL_NAME(result, name, parameters) #name,
constexpr const char *kNames[] = {YOKE_NCCL_CALLS(YOKE_NCCL_NAME)};
constexpr const char *kNewerNames[] = {YOKE_NCCL_NEWER_CALLS(YOKE_NCCL_NAME)};

constexpr const char *kRemedy =
    CUDART_VERSION / 1000 >= 13
        ? "install it ('pip install nvidia-nccl-cu13'), or name its folder in YOKE_CUDA_LIB_PATH"
        : "install it ('pip install nvidia-nccl-cu12'), or name its folder in YOKE_CUDA_LIB_PATH";

struct Library {
    Calls call;
    bool is_open;
    int version;
    char tried[3072];  // places tried, and the problem at each
    char why[3584];
};

Library g_library;
double g_timeout_s;  // timeout of the first question

// Question for the version, and the answer. The library stays mapped: it may never return.
class Asking final : public Aside {
public:
    explicit Asking(decltype(Calls::ncclGetVersion) ask) : Aside(nullptr, "version"), ask_(ask)
    {
        Dl_info place{};
        if (dladdr(reinterpret_cast<void *>(ask), &place))
            mapped_ = dlopen(place.dli_fname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    }
    int version = 0;

private:
    ~Asking() override
    {
        if (mapped_) dlclose(mapped_);
    }
    Outcome run() override
    {
        const ncclResult_t said = in("ncclGetVersion", [this] { return ask_(&version); });
        return said == ncclSuccess ? Outcome{Ending::kDone} : Outcome{Ending::kFailed, said};
    }
    decltype(Calls::ncclGetVersion) ask_;
    void *mapped_ = nullptr;
};

bool ask_version(decltype(Calls::ncclGetVersion) ask, int *version, char *why, size_t capacity)
{
    const auto asking = start_aside<Asking>(ask);
    const Outcome outcome =
        asking ? asking->wait(Limit::of(g_timeout_s)) : Outcome{Ending::kFailed};
    if (outcome.ending == Ending::kDone) {
        *version = asking->version;
        return true;
    }
    if (outcome.ending == Ending::kFailed)
        snprintf(why, capacity, "ncclGetVersion fails");
    else
        snprintf(why, capacity, "ncclGetVersion has not returned within %g s: it hangs",
                 g_timeout_s);
    return false;
}

// Checks the version before the other functions. So for an old library, `why` names the version, not the first
// missing call. Returns false if the version is too old or unknown.
bool has_version(void *library, char *why, size_t capacity)
{
    int version = 0;
    const auto ask =
        reinterpret_cast<decltype(Calls::ncclGetVersion)>(dlsym(library, "ncclGetVersion"));
    if (!ask) {
        snprintf(why, capacity, "the library has no ncclGetVersion");
        return false;
    }
    if (!ask_version(ask, &version, why, capacity)) return false;
    g_library.version = version;
    if (version >= kFloor) return true;
    snprintf(why, capacity, "the library is version %d.%d.%d, but this module needs 2.19 or later",
             version < 10000 ? version / 1000 : version / 10000,
             version < 10000 ? version % 1000 / 100 : version % 10000 / 100, version % 100);
    return false;
}

void find_newer(void *library, NewerCalls &calls)
{
    static_assert(sizeof calls == std::size(kNewerNames) * sizeof(void *));
    for (size_t i = 0; i < std::size(kNewerNames); ++i) {
        void *function = dlsym(library, kNewerNames[i]);
        memcpy(reinterpret_cast<char *>(&calls) + i * sizeof function, &function, sizeof function);
    }
}

bool accepts(void *library, char *why, size_t capacity)
{
    if (!has_version(library, why, capacity)) return false;
    RequiredCalls &required = g_library.call;
    if (const char *missing = cuda::find_calls(library, kNames, required)) {
        snprintf(why, capacity, "the library has no %s", missing);
        return false;
    }
    find_newer(library, g_library.call);
    return true;
}

constexpr LibraryName kLibrary = {"libnccl.so.2", {"nccl/lib", "", ""}, accepts};

void open_library()
{
    Text tried{g_library.tried, sizeof g_library.tried};
    g_library.is_open =
        find_library(kLibrary, g_host->config("YOKE_CUDA_LIB_PATH"), tried) != nullptr;
    if (g_library.is_open) return;
    g_library.version = 0;
    snprintf(g_library.why, sizeof g_library.why,
             "NCCL 2.19 or later cannot be loaded; tried %s; %s", g_library.tried, kRemedy);
}

const Library &library(double timeout_s = kPatience)
{
    static std::once_flag once;
    std::call_once(once, [timeout_s] {
        g_timeout_s = timeout_s;
        open_library();
    });
    return g_library;
}

}  // namespace

const Calls *find_calls()
{
    return library().is_open ? &g_library.call : nullptr;
}

const char *why_unavailable()
{
    return library().why;
}

int32_t find_version(double timeout_s)
{
    return library(timeout_s).version;
}

}  // namespace yoke::cuda::nccl
