#include "core/device/late.h"

#include "core/base/immortal.h"
#include "core/base/log.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace yoke {

namespace {

struct Failure {
    yoke_status status;
    std::string text;
};
struct Kept {
    Mutex mutex{LockRank::kOther};
    std::map<const Device *, Failure> failures;
    std::atomic<int> count{0};  // so that a call with nothing to tell takes no lock
};
Kept &kept = immortal<Kept>();

}  // namespace

void keep_late_failure(const Device &device, yoke_status status, const std::string &text) noexcept
{
    log(LogLevel::kWarn, "%s: found while waiting before a free: %s", device.name.c_str(),
        text.c_str());
    try {
        const std::lock_guard lock(kept.mutex);
        if (kept.failures.emplace(&device, Failure{status, text}).second) kept.count.fetch_add(1);
    } catch (...) {  // no memory for it: the log has told it
    }
}

void tell_late_failure(const Device &device)
{
    if (kept.count.load(std::memory_order_acquire) == 0) return;
    Failure failure{YOKE_OK, ""};
    {
        const std::lock_guard lock(kept.mutex);
        const auto found = kept.failures.find(&device);
        if (found == kept.failures.end()) return;
        failure = std::move(found->second);
        kept.failures.erase(found);
        kept.count.fetch_sub(1);
    }
    throw Error(failure.status, failure.text);
}

}  // namespace yoke
