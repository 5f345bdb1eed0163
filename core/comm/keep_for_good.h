// keep_for_good.h: memory of failed calls that cannot be freed, because a network or a device may still write there.
// The memory stays for the life of the process.
#pragma once

#include "core/tensor/tensor.h"

#include <vector>

namespace yoke {

// Keeps the memory for the life of the process, and logs a warning with its size; does nothing for memory without
// bytes. `whose`: "the engine cpu", "cuda:0".
void keep_for_good(std::vector<Ref<Storage>> storages, const char *whose);

}  // namespace yoke
