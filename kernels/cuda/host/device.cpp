// Devices: their list, their primary contexts, and their properties.
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>

#include "kernels/cuda/host/cublaslt.h"
#include "kernels/cuda/host/cudnn/cudnn.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/fault.h"
#include "kernels/cuda/host/peers.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

// Lock of opening and closing. Calls in between rely on their device staying open.
static std::mutex g_opening;

yoke_status device_count(int32_t *count)
{
    if (is_forked())
        return fail(
            YOKE_E_FORKED, 0,
            "the driver does not work in a forked child; start the child with spawn or exec");
    const Driver &found = driver();
    if (found.broken) return fail(found.broken, found.native_code, "%s", found.reason);
    *count = found.device_count;
    return YOKE_OK;
}

void why_unavailable(char *text, uint64_t capacity)
{
    if (capacity) snprintf(text, capacity, "%s", driver().reason);
}

// Retains the context shared by all users of CUDA in this process, so Yoke can use PyTorch's tensors.
static yoke_status retain(const Device &device, CUcontext *context)
{
    const DriverCalls &call = driver().call;
    const CUresult error = call.cuDevicePrimaryCtxRetain(context, device.number);
    if (error) {
        const char *name = nullptr;
        call.cuGetErrorName(error, &name);
        return fail(status_of(error), error,
                    "cuda:%d cannot be opened: cuDevicePrimaryCtxRetain failed with %s (%d); %s",
                    device.index, name ? name : "an unknown error", static_cast<int>(error),
                    remedy_of(error));
    }
    return YOKE_OK;
}

static void release(const Device &device)
{
    log_failure(device, driver().call.cuDevicePrimaryCtxRelease(device.number),
                "cuDevicePrimaryCtxRelease");
}

static yoke_status make_fault_in(Device &device, CUcontext context)
{
    const RelaxedScope scope(device, context, "device_open");
    return scope.status() ? scope.status() : make_fault(scope);
}

yoke_status make_ready(Device &device, const char *call)
{
    const std::lock_guard<std::mutex> lock(g_opening);
    if (device.context) return YOKE_OK;  // another thread was first
    if (!device.opens)
        return fail(YOKE_E_CLOSED, 0, "cuda:%d: %s on a device that is not open; open it first",
                    device.index, call);
    CUcontext context = nullptr;
    if (const yoke_status status = retain(device, &context)) return status;
    const yoke_status status = make_fault_in(device, context);
    if (status)
        release(device);
    else
        std::atomic_ref(device.context).store(context, std::memory_order_release);
    return status;
}

yoke_status device_open(int32_t index, void **device)
{
    int32_t count = 0;
    if (const yoke_status status = device_count(&count)) return status;
    if (index < 0 || index >= count)
        return fail(YOKE_E_INDEX, 0, "cuda:%d does not exist; there are %d CUDA devices", index,
                    count);
    const std::lock_guard<std::mutex> lock(g_opening);
    Device &wanted = driver().devices[index];
    keep_open(wanted);
    *device = &wanted;
    return YOKE_OK;
}

void keep_open(Device &device)
{
    std::atomic_ref(device.opens).fetch_add(1);
}

// Releases the objects in the device's context. If the context cannot be entered, returns false, and logs this if the
// device was not lost before. The device then keeps the objects, and the next device_open finds them.
static bool give_back(Device &device)
{
    const bool was_lost = is_lost(device);
    const RelaxedScope scope(&device, "device_close");
    if (scope.status()) {
        if (was_lost) return false;
        char text[128];
        snprintf(text, sizeof text,
                 "cuda:%d: device_close: cuCtxPushCurrent failed; the device stays open",
                 device.index);
        g_host->log(YOKE_LOG_WARN, text);
        return false;
    }
    cublaslt_close(device);
    cudnn_close(device);
    drop_fault(device);
    return true;
}

// Takes one open back if another one stays. Returns false for the last open.
static bool is_kept_open(Device &device)
{
    const std::atomic_ref opens(device.opens);
    int32_t known = opens.load();
    while (known > 1)
        if (opens.compare_exchange_weak(known, known - 1)) return true;
    return false;
}

void device_close(void *device)
{
    if (is_forked()) return;
    Device &closing = *static_cast<Device *>(device);
    if (is_kept_open(closing)) return;
    const std::lock_guard<std::mutex> lock(g_opening);
    if (is_kept_open(closing) || closing.opens == 0) return;
    std::atomic_ref(closing.opens).store(0);
    if (!closing.context) return;
    if (!give_back(closing)) return;
    forget_peers(closing);
    closing.context = nullptr;
    release(closing);
}

// Writes the UUID. The runtime gives 16 bytes without their kind. Only an instance of a partitioned card has its
// profile in its name ("NVIDIA A100-SXM4-40GB MIG 1g.5gb"). Other tools write MIG- before the UUID of an instance.
static void format_uuid(const cudaDeviceProp &device, char *text, size_t capacity)
{
    const cudaUUID_t &uuid = device.uuid;
    const char *prefix = strstr(device.name, " MIG ") ? "MIG-" : "GPU-";
    size_t used = static_cast<size_t>(snprintf(text, capacity, "%s", prefix));
    for (int i = 0; i < 16; ++i) {
        const char *dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
        const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
        used += static_cast<size_t>(snprintf(text + used, capacity - used, "%s%02x", dash, byte));
    }
}

yoke_status device_info(void *device, yoke_backend_device_info *info)
{
    Device *asked = nullptr;
    if (const yoke_status status = device_of(device, "device_info", &asked)) return status;
    const Scope scope(*asked, nullptr, "device_info");  // a list of devices must cost no context
    cudaDeviceProp found;
    if (const yoke_status status =
            scope.check(cudaGetDeviceProperties(&found, asked->number), "cudaGetDeviceProperties"))
        return status;
    yoke_backend_device_info told{};
    told.struct_size = info->struct_size;
    told.index = asked->index;
    snprintf(told.name, sizeof told.name, "%.*s", static_cast<int>(sizeof told.name - 1),
             found.name);
    format_uuid(found, told.uuid, sizeof told.uuid);
    snprintf(told.pci, sizeof told.pci, "%04x:%02x:%02x.0",
             static_cast<unsigned>(found.pciDomainID), static_cast<unsigned>(found.pciBusID),
             static_cast<unsigned>(found.pciDeviceID));
    told.total_memory = found.totalGlobalMem;
    told.multiprocessors = found.multiProcessorCount;
    told.cc_major = found.major;
    told.cc_minor = found.minor;
    // Tensor cores: f16 from Volta on, bf16 from Ampere on.
    told.matrix_dtypes =
        (found.major >= 7 ? 1u << YOKE_F16 : 0) | (found.major >= 8 ? 1u << YOKE_BF16 : 0);
    told.alignment = 256;  // cudaMalloc's alignment, by the programming guide
    *info = told;
    return YOKE_OK;
}

yoke_status device_synchronize(void *device)
{
    const RelaxedScope scope(device, "device_synchronize");
    if (scope.status()) return scope.status();
    const yoke_status status = scope.check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return status ? status : take_fault(scope);
}

yoke_status mem_info(void *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
    const RelaxedScope scope(device, "mem_info");
    if (scope.status()) return scope.status();
    size_t free_now = 0, total = 0;
    if (const yoke_status status = scope.check(cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo"))
        return status;
    *free_bytes = free_now;
    *total_bytes = total;
    return YOKE_OK;
}

}  // namespace yoke::cuda
