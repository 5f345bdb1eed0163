// copy.cpp: bytes between the host program and a tensor's device.
#include "core/tensor/tensor.h"

namespace yoke {

namespace {

void check_size(const yoke_tensor &x, uint64_t bytes, const char *call)
{
    if (bytes != x.nbytes())
        fail(YOKE_E_VALUE, "%s: argument 'bytes' is %llu, but the tensor %s holds %llu bytes", call,
             static_cast<unsigned long long>(bytes), describe(x).c_str(),
             static_cast<unsigned long long>(x.nbytes()));
}

}  // namespace

void copy_to_host(const yoke_tensor &x, void *to, uint64_t bytes, const char *call)
{
    check_size(x, bytes, call);
    check_usable(*x.device);
    check_not_capturing(call);
    if (bytes == 0) return;
    const yoke_backend &backend = *x.device->backend;
    check_backend(
        backend.copy(x.device->handle, to, x.data, bytes, YOKE_COPY_DEVICE_TO_HOST, nullptr), call,
        x.device->name.c_str());
    synchronize(*x.device);
}

void copy_from_host(yoke_tensor &x, const void *from, uint64_t bytes, const char *call)
{
    check_size(x, bytes, call);
    check_usable(*x.device);
    check_not_capturing(call);
    if (bytes == 0) return;
    const yoke_backend &backend = *x.device->backend;
    check_backend(
        backend.copy(x.device->handle, x.data, from, bytes, YOKE_COPY_HOST_TO_DEVICE, nullptr),
        call, x.device->name.c_str());
    synchronize(*x.device);  // the host may reuse its memory as soon as this returns
    x.storage->last_writer.store(nullptr, std::memory_order_relaxed);
    x.storage->version.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace yoke
