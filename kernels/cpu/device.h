// The parts of the backend's table, by file: memory.cpp, streams.cpp, device.cpp. Contracts: core/backend/backend.h.
#pragma once

#include "kernels/common/entries.h"
#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

// CPU device, returned by device_open. Its address is the handle.
struct Device {
    int32_t index;
};
extern Device g_device;

// Returns YOKE_OK if `device` is the CPU. Otherwise reports "cpu: vmm_map was given a device that is not the CPU" and
// returns YOKE_E_VALUE.
yoke_status check_device(const void *device, const char *call);

YOKE_DEVICE_ENTRIES(YOKE_DECLARE_ENTRY)
YOKE_STREAM_ENTRIES(YOKE_DECLARE_ENTRY)

const char *build_info();
void describe_build(const char *isa);  // before build_info
void vmm_after_fork();

}  // namespace yoke::cpu
