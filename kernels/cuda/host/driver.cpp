#include "kernels/cuda/host/driver.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "kernels/cuda/host/archs.h"
#include "kernels/cuda/host/floors.h"

namespace yoke::cuda {

namespace {

constexpr const char *kLibrary = "libcuda.so.1";

constexpr Floor kFloor = floor_of(CUDART_VERSION);

// Keeps the reason that there are no devices. `broken` is YOKE_OK if there is simply no GPU. Returns false, for the
// caller to return.
__attribute__((format(printf, 4, 5))) bool give_up(Driver &driver, yoke_status broken,
                                                   int64_t native_code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(driver.reason, sizeof driver.reason, format, args);
    va_end(args);
    driver.broken = broken;
    driver.native_code = native_code;
    return false;
}

bool give_up_on_error(Driver &driver, const char *call, CUresult error)
{
    const char *name = nullptr;
    if (driver.call.cuGetErrorName) driver.call.cuGetErrorName(error, &name);
    return give_up(driver, YOKE_E_UNAVAILABLE, error, "%s failed with %s (%d); %s", call,
                   name ? name : "an error of the NVIDIA driver", static_cast<int>(error),
                   remedy_of(error));
}

// ---- Finding the library ----------------------------------------------------------------------

// Keeps the reason that the library is missing or cannot be loaded. Returns false. `said` is the dynamic loader's
// text; the loader has no error numbers.
bool no_library(Driver &driver, const char *said)
{
    const bool absent = strncmp(said, "libcuda.so.1: cannot open", 25) == 0;
    if (!absent)
        return give_up(
            driver, YOKE_E_UNAVAILABLE, 0,
            "the NVIDIA driver's library cannot be loaded: %s; reinstall the driver, or correct YOKE_CUDA_LIB_PATH and LD_LIBRARY_PATH",
            said);
    if (access("/proc/driver/nvidia/version", F_OK) == 0)
        return give_up(
            driver, YOKE_E_UNAVAILABLE, 0,
            "the NVIDIA kernel driver is loaded, but there is no %s; in a container add compute to NVIDIA_DRIVER_CAPABILITIES, elsewhere install the driver's CUDA library (Debian: libcuda1, Ubuntu: libnvidia-compute)",
            kLibrary);
    const char *folders = g_host->config("YOKE_CUDA_LIB_PATH");
    return give_up(
        driver, YOKE_OK, 0,
        "there is no %s%s%s: no NVIDIA driver is installed; install release %s or newer (Debian: nvidia-driver), start the container with --gpus all, or use device='cpu'; yoke doctor tells more",
        kLibrary, folders ? ", nor in YOKE_CUDA_LIB_PATH, " : "", folders ? folders : "",
        kFloor.release);
}

// Opens the library from the first folder of YOKE_CUDA_LIB_PATH (separated by colons) that contains it. If no folder
// does, opens it by name. Returns null on failure.
void *open_from_path(const char *folders)
{
    while (folders && *folders) {
        const int length = static_cast<int>(strcspn(folders, ":"));
        char path[4096];
        snprintf(path, sizeof path, "%.*s/%s", length, folders, kLibrary);
        if (length && access(path, F_OK) == 0) return dlopen(path, RTLD_NOW | RTLD_LOCAL);
        folders += length;
        folders += *folders == ':';
    }
    return dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
}

void *open_library(Driver &driver)
{
    // A process has a single driver: by name, the runtime takes the loaded library.
    void *library = dlopen(kLibrary, RTLD_NOW | RTLD_NOLOAD);
    if (!library) library = open_from_path(g_host->config("YOKE_CUDA_LIB_PATH"));
    if (!library) {
        const char *problem = dlerror();
        no_library(driver, problem ? problem : "the loader gave no reason");
    }
    return library;
}

template <class Call>
bool find(void *library, const char *symbol, Call &call)
{
    call = reinterpret_cast<Call>(dlsym(library, symbol));
    return call != nullptr;
}

// Returns the path of the file that contains a function of the driver.
const char *file_of(void *call)
{
    Dl_info info{};
    return dladdr(call, &info) && info.dli_fname ? info.dli_fname : kLibrary;
}

bool find_calls(Driver &driver, void *library)
{
#define YOKE_CUDA_NAME(name) #name
#define YOKE_CUDA_FIND(name)                                                       \
    if (!find(library, YOKE_CUDA_NAME(name), driver.call.name))                    \
        return give_up(driver, YOKE_E_UNAVAILABLE, 0,                              \
                       "the NVIDIA driver has no %s; install release %s or newer", \
                       YOKE_CUDA_NAME(name), kFloor.release);
    YOKE_CUDA_DRIVER_CALLS(YOKE_CUDA_FIND)
#undef YOKE_CUDA_FIND
#undef YOKE_CUDA_NAME
    return true;
}

// ---- Examining it -----------------------------------------------------------------------------

bool give_up_old(Driver &driver, int version)
{
    char older[64] = "";
    if (version >= kFirstToolkit)  // else no Yoke was built for it
        snprintf(older, sizeof older, ", or a Yoke that was built with CUDA %d", version / 1000);
    return give_up(
        driver, YOKE_E_UNAVAILABLE, cudaErrorInsufficientDriver,
        "the NVIDIA driver supports CUDA %d.%d, but this module needs CUDA %d.%d; install driver release %s or newer%s",
        version / 1000, version % 1000 / 10, kFloor.version / 1000, kFloor.version % 1000 / 10,
        kFloor.release, older);
}

// Checks the driver's version. Returns false, with the reason, if the library is not NVIDIA's, is the toolkit's stub,
// or is too old. This comes before all other calls, because an old driver may not have them.
bool check_version(Driver &driver, void *library)
{
    DriverCalls &call = driver.call;
    find(library, "cuGetErrorName", call.cuGetErrorName);
    if (!find(library, "cuDriverGetVersion", call.cuDriverGetVersion))
        return give_up(
            driver, YOKE_E_UNAVAILABLE, 0,
            "%s has no cuDriverGetVersion, so this library is not NVIDIA's; correct YOKE_CUDA_LIB_PATH and LD_LIBRARY_PATH",
            kLibrary);
    int version = 0;
    const CUresult error = call.cuDriverGetVersion(&version);
    if (error == CUDA_ERROR_STUB_LIBRARY)
        return give_up(
            driver, YOKE_E_UNAVAILABLE, error,
            "%s is the CUDA toolkit's stub, which serves only for linking; remove its folder from LD_LIBRARY_PATH and YOKE_CUDA_LIB_PATH",
            file_of(reinterpret_cast<void *>(call.cuDriverGetVersion)));
    if (error != CUDA_SUCCESS) return give_up_on_error(driver, "cuDriverGetVersion", error);
    driver.version = version;
    return version >= kFloor.version || give_up_old(driver, version);
}

constexpr const char *kBuiltFor =
    "this module was built for " YOKE_CUDA_ARCHS
    "; install a module that was built with the GPU's compute capability in YOKE_CUDA_ARCHS";

bool no_devices(Driver &driver, int64_t native_code)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (visible)
        return give_up(
            driver, YOKE_OK, native_code,
            "CUDA_VISIBLE_DEVICES is '%s', so no GPU is visible; unset CUDA_VISIBLE_DEVICES, or name GPUs that 'nvidia-smi -L' lists",
            visible);
    return give_up(
        driver, YOKE_OK, native_code,
        "the NVIDIA driver finds no GPU; check that 'nvidia-smi -L' lists a GPU and that this user may open /dev/nvidia*, or start the container with --gpus all");
}

// Logs a device that is passed over, and appends it to the reason, which is used if no device is left.
void pass_over(Driver &driver, int number, CUdevice device, int major, int minor)
{
    char name[128] = "", text[512];  // kBuiltFor names every architecture
    if (const CUresult error = driver.call.cuDeviceGetName(name, sizeof name, device))
        snprintf(name, sizeof name, "cuDeviceGetName failed with %d", static_cast<int>(error));
    const size_t used = strlen(driver.reason);
    snprintf(driver.reason + used, sizeof driver.reason - used,
             "%sGPU %d (%s) has compute capability %d.%d", used ? ", " : "", number, name, major,
             minor);
    snprintf(text, sizeof text,
             "cuda does not use GPU %d (%s): its compute capability is %d.%d, %s", number, name,
             major, minor, kBuiltFor);
    g_host->log(YOKE_LOG_WARN, text);
}

bool add_device(Driver &driver, int number)
{
    constexpr CUdevice_attribute kMajor = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    constexpr CUdevice_attribute kMultiprocessors = CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    constexpr CUdevice_attribute kMinor = CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    const DriverCalls &call = driver.call;
    CUdevice device = 0;
    int major = 0, minor = 0, multiprocessors = 0;
    size_t memory = 0;
    const char *asked = "cuDeviceGet";
    CUresult error = call.cuDeviceGet(&device, number);
    const auto ask = [&](int *value, CUdevice_attribute attribute) {
        if (error) return;
        asked = "cuDeviceGetAttribute";
        error = call.cuDeviceGetAttribute(value, attribute, device);
    };
    ask(&major, kMajor);
    ask(&minor, kMinor);
    ask(&multiprocessors, kMultiprocessors);
    if (!error) {
        asked = "cuDeviceTotalMem";
        error = call.cuDeviceTotalMem(&memory, device);
    }
    if (error) return give_up_on_error(driver, asked, error);
    const int arch = arch_of_code(YOKE_CUDA_ARCHS, major, minor, driver.version >= CUDART_VERSION);
    if (!arch) {
        pass_over(driver, number, device, major, minor);
        return true;
    }
    const int32_t index = driver.device_count++;
    driver.devices[index] = {index, device, memory, multiprocessors, arch, nullptr, 0, nullptr, 0};
    return true;
}

bool find_devices(Driver &driver)
{
    CUresult error = driver.call.cuInit(0);
    if (error == CUDA_ERROR_NO_DEVICE) return no_devices(driver, error);
    if (error) return give_up_on_error(driver, "cuInit", error);
    int count = 0;
    error = driver.call.cuDeviceGetCount(&count);
    if (error) return give_up_on_error(driver, "cuDeviceGetCount", error);
    if (count == 0) return no_devices(driver, 0);
    if (count > kMaxDevices) {
        g_host->log(YOKE_LOG_WARN, "cuda: only the first 64 GPUs are used");
        count = kMaxDevices;
    }
    for (int number = 0; number < count; ++number)
        if (!add_device(driver, number)) {
            driver.device_count = 0;
            return false;
        }
    if (driver.device_count) {
        driver.reason[0] = '\0';
        return true;
    }
    char unserved[768];
    snprintf(unserved, sizeof unserved, "%.*s", static_cast<int>(sizeof unserved - 1),
             driver.reason);
    return give_up(driver, YOKE_E_UNAVAILABLE, 0, "%s; %s", unserved, kBuiltFor);
}

bool examine(Driver &driver)
{
    void *library = open_library(driver);
    return library && check_version(driver, library) && find_calls(driver, library) &&
           find_devices(driver);
}

}  // namespace

Driver &driver()
{
    static Driver found{};
    static std::once_flag once;
    std::call_once(once, [] { examine(found); });
    return found;
}

}  // namespace yoke::cuda
