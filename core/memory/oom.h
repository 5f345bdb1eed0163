// oom.h: error of a request without memory: the request, the present use of the memory, and the remedy.
#pragma once

#include "core/base/thread_state.h"
#include "core/memory/device_memory.h"

#include <string>

namespace yoke {

// Raises YOKE_E_OOM and notes its numbers for the calling thread. `reason` is the backend's.
[[noreturn]] void fail_oom(DeviceMemory &memory, uint64_t bytes, const std::string &reason);

// Returns the numbers of the thread's last error, if that came from fail_oom(); else null.
const OomRecord *last_oom() noexcept;

}  // namespace yoke
