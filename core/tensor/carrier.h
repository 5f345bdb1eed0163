// carrier.h: one stream of each device that carries what a device has to the host and back, beside the work of others.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Copies `bytes` of a storage's memory, behind the current stream's work so far. The fence is behind the copy; null
// where there is nothing to wait for. Who may let go of the storage may do so at once.
Ref<Fence> carry(Storage &storage, void *to, const void *from, uint64_t bytes, int32_t direction,
                 const char *call);

}  // namespace yoke
