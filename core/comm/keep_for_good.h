// keep_for_good.h: memory of calls that failed and that cannot be taken back: a network or a device may still write
// there. It stays for the life of the process.
#pragma once

#include "core/tensor/tensor.h"

#include <vector>

namespace yoke {

// `whose`: "the engine cpu", "cuda:0". Logs how much stays; does nothing for memory without bytes.
void keep_for_good(std::vector<Ref<Storage>> storages, const char *whose);

}  // namespace yoke
