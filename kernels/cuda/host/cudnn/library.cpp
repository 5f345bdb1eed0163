// Finding cuDNN and all of its parts.
#include "kernels/cuda/host/cudnn/library.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <climits>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include "kernels/cuda/host/cuda.h"
#include "kernels/cuda/host/cudnn/cudnn.h"

namespace yoke::cuda {

namespace {

#define YOKE_STRING_(x) #x
#define YOKE_STRING(x) YOKE_STRING_(x)
constexpr int kCuda = CUDART_VERSION / 1000;
constexpr size_t kOldest = 90800;
constexpr const char *kNames[] = {YOKE_CUDNN_CALLS(YOKE_LIBRARY_NAME)};

// The last one came with cuDNN 9.21.
constexpr const char *kParts[] = {"libcudnn_heuristic.so.9", "libcudnn_engines_precompiled.so.9",
                                  "libcudnn_engines_runtime_compiled.so.9",
                                  "libcudnn_engines_tensor_ir.so.9"};
constexpr int kNeeded = 3;

constexpr const char *kInstall =
    kCuda >= 13
        ? "install it ('pip install nvidia-cudnn-cu13'), or name its folder in YOKE_CUDA_LIB_PATH"
        : "install it ('pip install nvidia-cudnn-cu12'), or name its folder in YOKE_CUDA_LIB_PATH";

struct Library {
    CudnnCalls call;
    bool is_open;
    size_t version;
    const char *remedy;
    char nvrtc[1024];  // places tried for NVRTC, and the problem at each
    char tried[3072];  // places tried for cuDNN, and the problem at each
    char why[4608];
};

Library g_library;

// Writes the folder of the file that contains a function, or "" if unknown.
void folder_of(const void *function, char (&folder)[PATH_MAX])
{
    Dl_info info{};
    folder[0] = '\0';
    if (!dladdr(function, &info) || !info.dli_fname) return;
    snprintf(folder, sizeof folder, "%s", info.dli_fname);
    char *slash = strrchr(folder, '/');
    *(slash ? slash : folder) = '\0';
}

// ---- copies ---------------------------------------------------------------------------------------------------------

// First loaded part of a cuDNN outside `folder`. If `folder` is null, any loaded part.
struct Stranger {
    const char *folder;
    char path[PATH_MAX];
};

bool is_same_folder(const char *a, const char *b)
{
    struct stat left {
    }, right{};
    return stat(a, &left) == 0 && stat(b, &right) == 0 && left.st_dev == right.st_dev &&
           left.st_ino == right.st_ino;
}

int look_at(dl_phdr_info *info, size_t, void *out)
{
    Stranger &stranger = *static_cast<Stranger *>(out);
    const char *slash = info->dlpi_name ? strrchr(info->dlpi_name, '/') : nullptr;
    if (!slash || strncmp(slash + 1, "libcudnn", 8) != 0) return 0;
    snprintf(stranger.path, sizeof stranger.path, "%s", info->dlpi_name);
    stranger.path[slash - info->dlpi_name] = '\0';
    if (stranger.folder && is_same_folder(stranger.path, stranger.folder)) return 0;
    stranger.path[slash - info->dlpi_name] = '/';
    return 1;
}

bool find_stranger(const char *folder, Stranger &stranger)
{
    stranger.folder = folder;
    return dl_iterate_phdr(look_at, &stranger) != 0;
}

bool refuse_stranger(const char *folder, char *why, size_t capacity)
{
    Stranger stranger;
    if (!find_stranger(folder, stranger)) return true;
    snprintf(why, capacity, "this process has loaded another copy of cuDNN, %s", stranger.path);
    g_library.remedy =
        "a process cannot use two copies of cuDNN: set YOKE_CUDA_LIB_PATH to the folder of the loaded copy";
    return false;
}

// ---- NVRTC ----------------------------------------------------------------------------------------------------------

bool takes_any(void *, char *, size_t)
{
    return true;
}

bool find_nvrtc(const char *folder, char *why, size_t capacity)
{
    char file[32], folders[PATH_MAX + 1024];
    snprintf(file, sizeof file, "libnvrtc.so.%d", kCuda);
    if (dlopen(file, RTLD_NOW | RTLD_NOLOAD)) return true;
    const char *setting = g_host->config("YOKE_CUDA_LIB_PATH");
    snprintf(folders, sizeof folders, "%s:%.1000s", folder, setting ? setting : "");
    char wheel[16];
    snprintf(wheel, sizeof wheel, "cu%d/lib", kCuda);
    const LibraryName name = {file, {wheel, "cuda_nvrtc/lib", ""}, takes_any};
    Text tried{g_library.nvrtc, sizeof g_library.nvrtc};
    if (find_library(name, folders, tried)) return true;
    snprintf(why, capacity, "NVRTC is missing, tried %s", g_library.nvrtc);
    g_library.remedy =
        kCuda >= 13
            ? "install NVRTC ('pip install nvidia-cuda-nvrtc'), or name its folder in YOKE_CUDA_LIB_PATH"
            : "install NVRTC ('pip install nvidia-cuda-nvrtc-cu12'), or name its folder in YOKE_CUDA_LIB_PATH";
    return false;
}

// ---- parts ----------------------------------------------------------------------------------------------------------

// Parts of a copy. If the copy does not work, its parts are closed again, so the next copy finds its own parts.
class Parts {
public:
    ~Parts()
    {
        for (void *part : parts_)
            if (part && !kept_) dlclose(part);
    }
    bool open(const char *folder, char *why, size_t capacity);
    void keep() { kept_ = true; }

private:
    void *parts_[std::size(kParts)] = {};
    bool kept_ = false;
};

bool Parts::open(const char *folder, char *why, size_t capacity)
{
    for (int i = 0; i < static_cast<int>(std::size(kParts)); ++i) {
        char path[PATH_MAX + 64];
        snprintf(path, sizeof path, "%s/%s", folder, kParts[i]);
        parts_[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (parts_[i] || i >= kNeeded) continue;
        const char *problem = dlerror();
        snprintf(why, capacity, "the part %s cannot be opened: %s", kParts[i],
                 problem ? problem : "the loader gave no reason");
        g_library.remedy =
            "install all of cuDNN in one folder ('pip install --force-reinstall' its package)";
        return false;
    }
    return true;
}

bool has_version(char *why, size_t capacity)
{
    const size_t version = g_library.call.cudnnGetVersion(),
                 cuda = g_library.call.cudnnGetCudartVersion() / 1000;
    if (version >= kOldest && cuda == kCuda) return true;
    snprintf(
        why, capacity,
        "the library is version %zu.%zu.%zu for CUDA %zu, but this module needs 9.8 or later for CUDA %d",
        version / 10000, version % 10000 / 100, version % 100, cuda, kCuda);
    return false;
}

bool accepts(void *library, char *why, size_t capacity)
{
    if (const char *missing = find_calls(library, kNames, g_library.call)) {
        snprintf(why, capacity, "the library has no %s", missing);
        return false;
    }
    char folder[PATH_MAX];
    folder_of(reinterpret_cast<const void *>(g_library.call.cudnnGetVersion), folder);
    Parts parts;
    const bool serves = has_version(why, capacity) && refuse_stranger(folder, why, capacity) &&
                        find_nvrtc(folder, why, capacity) && parts.open(folder, why, capacity);
    if (serves) parts.keep();
    return serves;
}

constexpr LibraryName kLibrary = {"libcudnn_graph.so.9", {"cudnn/lib", "", ""}, accepts};

// Opens cuDNN, or keeps the reason of the failure. If a copy is already loaded, for example PyTorch's, only this copy
// can work. So it comes before all folders except YOKE_CUDA_LIB_PATH.
void open_library()
{
    const char *setting = g_host->config("YOKE_CUDA_LIB_PATH");
    char folders[PATH_MAX + 1024];
    Stranger loaded;
    const bool is_loaded = find_stranger(nullptr, loaded);
    if (is_loaded) *strrchr(loaded.path, '/') = '\0';
    snprintf(folders, sizeof folders, "%.1000s:%s", setting ? setting : "",
             is_loaded ? loaded.path : "");
    Text tried{g_library.tried, sizeof g_library.tried};
    g_library.remedy = kInstall;
    g_library.is_open = find_library(kLibrary, folders, tried) != nullptr;
    if (g_library.is_open)
        g_library.version = g_library.call.cudnnGetVersion();
    else
        snprintf(g_library.why, sizeof g_library.why,
                 "cuDNN 9.8 or later for CUDA %d cannot be loaded; tried %s; %s", kCuda,
                 g_library.tried, g_library.remedy);
}

const Library &library()
{
    static std::once_flag once;
    std::call_once(once, open_library);
    return g_library;
}

}  // namespace

const CudnnCalls *cudnn_calls()
{
    return library().is_open ? &g_library.call : nullptr;
}

const char *cudnn_why_unavailable()
{
    return library().why;
}

int64_t cudnn_version()
{
    return static_cast<int64_t>(library().version);
}

}  // namespace yoke::cuda
