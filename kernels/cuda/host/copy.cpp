// Copies and fills of plain bytes, ordered on a stream.
#include "kernels/cuda/host/entries.h"
#include "kernels/cuda/host/peers.h"

namespace yoke::cuda {

// Writes CUDA's kind of a direction to `kind`. Returns false if there is no such direction. For a copy between
// devices, CUDA finds both devices by their addresses. Without peer access, CUDA copies through host memory.
static bool kind_of(int32_t direction, cudaMemcpyKind &kind)
{
    switch (direction) {
        case YOKE_COPY_HOST_TO_DEVICE:
            kind = cudaMemcpyHostToDevice;
            return true;
        case YOKE_COPY_DEVICE_TO_HOST:
            kind = cudaMemcpyDeviceToHost;
            return true;
        case YOKE_COPY_DEVICE:
            kind = cudaMemcpyDeviceToDevice;
            return true;
        case YOKE_COPY_PEER:
            kind = cudaMemcpyDefault;
            return true;
        default:
            return false;
    }
}

yoke_status copy(void *device, void *dst, const void *src, uint64_t bytes, int32_t direction,
                 void *stream)
{
    const Scope scope(device, "copy");
    if (scope.status()) return scope.status();
    cudaMemcpyKind kind{};
    if (!kind_of(direction, kind))
        return scope.refuse(YOKE_E_VALUE, "copy does not support direction %d; use 1 to 4",
                            direction);
    if (bytes == 0) return YOKE_OK;
    const auto on = static_cast<cudaStream_t>(stream);
    if (direction == YOKE_COPY_PEER) {
        // If one device cannot reach the other, only this call copies mapped chunks; the copy goes through the host.
        const int peer = reach_peer(scope, src);
        if (peer >= 0)
            return scope.check(
                cudaMemcpyPeerAsync(dst, scope.device().number, src, peer, bytes, on),
                "cudaMemcpyPeerAsync of %llu bytes", static_cast<unsigned long long>(bytes));
    }
    return scope.check(cudaMemcpyAsync(dst, src, bytes, kind, on), "cudaMemcpyAsync of %llu bytes",
                       static_cast<unsigned long long>(bytes));
}

yoke_status fill(void *device, void *dst, uint8_t value, uint64_t bytes, void *stream)
{
    const Scope scope(device, "fill");
    if (scope.status()) return scope.status();
    if (bytes == 0) return YOKE_OK;
    return scope.check(cudaMemsetAsync(dst, value, bytes, static_cast<cudaStream_t>(stream)),
                       "cudaMemsetAsync of %llu bytes", static_cast<unsigned long long>(bytes));
}

}  // namespace yoke::cuda
