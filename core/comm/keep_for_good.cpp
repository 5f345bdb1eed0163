#include "core/comm/keep_for_good.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/log.h"

#include <algorithm>
#include <iterator>

namespace yoke {

namespace {

struct Kept {
    Mutex mutex{LockRank::kOther};
    std::vector<Ref<Storage>> storages;
};
Kept &kept = immortal<Kept>();

}  // namespace

void keep_for_good(std::vector<Ref<Storage>> storages, const char *whose)
{
    uint64_t bytes = 0;
    for (const Ref<Storage> &each : storages) bytes += each->bytes;
    if (bytes == 0) return;  // for example for a barrier
    log(LogLevel::kWarn,
        "%llu bytes of a failed call stay allocated until this process ends: %s cannot cancel the call",
        static_cast<unsigned long long>(bytes), whose);
    const std::lock_guard lock(kept.mutex);
    std::ranges::move(storages, std::back_inserter(kept.storages));
}

}  // namespace yoke
