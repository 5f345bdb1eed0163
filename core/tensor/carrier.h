// carrier.h: a stream of each device for copies between device and host memory, beside the work of other streams.
#pragma once

#include "core/tensor/tensor.h"

namespace yoke {

// Begins to copy `bytes` between a storage's memory and host memory, behind the current stream's work so far. Returns
// a fence behind the copy; null if there is nothing to wait for. The caller may release the storage at once.
Ref<Fence> carry(Storage &storage, void *to, const void *from, uint64_t bytes, int32_t direction,
                 const char *call);

}  // namespace yoke
