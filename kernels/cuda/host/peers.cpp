#include "kernels/cuda/host/peers.h"

#include <atomic>

#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"
#include "kernels/cuda/host/relaxed.h"
#include "kernels/cuda/host/vmm.h"

namespace yoke::cuda {

namespace {

uint64_t bit_of(int number)
{
    return uint64_t{1} << number;
}

bool is_left_out()
{
    static const bool setting = [] {
        const char *value = g_host->config("YOKE_NO_PEER_ACCESS");
        return value && *value == '1';
    }();
    return setting;
}

// Returns CUDA's number of the device that owns the memory. Returns -1 for other memory, and on a failure, which is
// logged.
int owner_of(const Device &device, const void *place)
{
    cudaPointerAttributes found{};
    const cudaError_t error = cudaPointerGetAttributes(&found, place);
    log_failure(device, error, "cudaPointerGetAttributes");
    return !error && found.type == cudaMemoryTypeDevice ? found.device : -1;
}

void enable(const Device &device, int peer)
{
    int can = 0;
    if (const cudaError_t error = cudaDeviceCanAccessPeer(&can, device.number, peer))
        return log_failure(device, error, "cudaDeviceCanAccessPeer");
    if (!can) return;
    const Relaxed relaxed;
    const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled)
        cudaGetLastError();  // by another library in this process
    else
        log_failure(device, error, "cudaDeviceEnablePeerAccess");
    if (!error || error == cudaErrorPeerAccessAlreadyEnabled) open_chunks(device, peer);
}

}  // namespace

static_assert(kMaxDevices <= 64, "a device keeps a bit for each peer");

int reach_peer(const Scope &scope, const void *place)
{
    Device &device = scope.device();
    const int peer = owner_of(device, place);
    if (peer < 0 || peer >= kMaxDevices || peer == device.number || is_left_out()) return peer;
    // While the first thread still asks, copies of other threads go through host memory.
    const uint64_t known =
        std::atomic_ref(device.peers).fetch_or(bit_of(peer), std::memory_order_relaxed);
    if (!(known & bit_of(peer))) enable(device, peer);
    return peer;
}

void forget_peers(Device &device)
{
    Driver &all = driver();
    for (int32_t i = 0; i < all.device_count; ++i)
        std::atomic_ref(all.devices[i].peers)
            .fetch_and(~bit_of(device.number), std::memory_order_relaxed);
    std::atomic_ref(device.peers).store(0, std::memory_order_relaxed);
    close_chunks(device);
}

}  // namespace yoke::cuda
