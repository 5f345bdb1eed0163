#include "kernels/cuda/host/fault.h"

#include "kernels/common/index_axes.h"
#include "kernels/cuda/host/driver.h"
#include "kernels/cuda/host/failures.h"

#include <cstdio>
#include <cstring>
#include <mutex>

namespace yoke::cuda {

yoke_status make_fault(const Scope &scope)
{
    void *memory = nullptr;
    if (const yoke_status status =
            scope.check(cudaHostAlloc(&memory, sizeof(Fault), cudaHostAllocPortable),
                        "cudaHostAlloc of %zu bytes", sizeof(Fault)))
        return status;
    memset(memory, 0, sizeof(Fault));
    scope.device().fault = static_cast<Fault *>(memory);
    return YOKE_OK;
}

void drop_fault(Device &device)
{
    if (device.fault) log_failure(device, cudaFreeHost(device.fault), "device_close: cudaFreeHost");
    device.fault = nullptr;
}

// Takes the note, for only one of the threads that find it. Returns false if there is no note. The place is freed
// last, because a kernel may claim the place at once.
static bool take_note(const Device &device, Fault &taken)
{
    static std::mutex taking[kMaxDevices];
    Fault *fault = device.fault;
    if (!fault || !__atomic_load_n(&fault->ready, __ATOMIC_ACQUIRE)) return false;
    const std::lock_guard<std::mutex> lock(taking[device.index]);
    if (!__atomic_load_n(&fault->ready, __ATOMIC_ACQUIRE)) return false;  // another was first
    taken = *fault;
    __atomic_store_n(&fault->ready, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&fault->claimed, 0, __ATOMIC_RELEASE);
    return true;
}

// All formats are Yoke's own, with the arguments described in fault.h.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
yoke_status take_fault(const Scope &scope)
{
    Fault fault;
    if (!take_note(scope.device(), fault)) return YOKE_OK;
    char text[300], place[200];
    const char *op = op_name(fault.op);
    const auto value = static_cast<long long>(fault.value),
               bound = static_cast<long long>(fault.bound);
    if (fault.ndim < 0) {
        snprintf(text, sizeof text, fault.format, op, static_cast<long long>(fault.position), value,
                 bound, bound - 1);
    } else {
        kernels::write_place(fault.shape, fault.ndim, fault.position, place, sizeof place);
        snprintf(text, sizeof text, fault.format, op + (*op == '_'), place, value, bound,
                 bound - 1);
    }
    return scope.refuse(fault.status, "%s (found on the device, by a call before this one)", text);
}
#pragma GCC diagnostic pop

}  // namespace yoke::cuda
