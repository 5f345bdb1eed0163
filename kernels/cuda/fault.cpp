#include "kernels/cuda/fault.h"

#include <cstdio>
#include <cstring>

namespace yoke::cuda {

yoke_status make_fault(Device &device)
{
    const Scope scope(&device, "device_open");
    if (scope.status()) return scope.status();
    void *memory = nullptr;
    if (const yoke_status status =
            scope.check(cudaHostAlloc(&memory, sizeof(Fault), cudaHostAllocPortable),
                        "cudaHostAlloc of %zu bytes", sizeof(Fault)))
        return status;
    memset(memory, 0, sizeof(Fault));
    device.fault = static_cast<Fault *>(memory);
    return YOKE_OK;
}

void drop_fault(Device &device)
{
    const Scope scope(&device, "device_close");
    if (!scope.status() && device.fault) cudaFreeHost(device.fault);
    device.fault = nullptr;
}

// A format is one of ours, with its four arguments in that order.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
yoke_status take_fault(const Scope &scope)
{
    Fault *fault = scope.device().fault;
    if (!fault || !__atomic_load_n(&fault->ready, __ATOMIC_ACQUIRE)) return YOKE_OK;
    char text[300];
    snprintf(text, sizeof text, fault->format, op_name(fault->op),
             static_cast<long long>(fault->position), static_cast<long long>(fault->value),
             static_cast<long long>(fault->bound));
    memset(fault, 0, sizeof *fault);
    return scope.refuse(YOKE_E_INDEX, "%s (found on the device, by a call before this one)", text);
}
#pragma GCC diagnostic pop

}  // namespace yoke::cuda
