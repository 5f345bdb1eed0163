#include "core/device/late.h"

#include "core/base/immortal.h"
#include "core/base/log.h"

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <utility>

namespace yoke {

namespace {

struct Failure {
    yoke_status status;
    std::string text;
};
struct LateFailures {
    Mutex mutex{LockRank::kOther};
    std::map<const Device *, Failure> failures;
    std::atomic<int> count{0};  // so that a call with nothing to tell takes no lock
};
LateFailures &late_failures = immortal<LateFailures>();

}  // namespace

static void log_loss(const Device &device, const char *text) noexcept
{
    if (device.loss_told.exchange(true)) return;
    log(LogLevel::kWarn, "%s: found while giving memory and handles back: %s", device.name.c_str(),
        text);
}

bool tell_loss(const Device &device, yoke_status status, const char *call) noexcept
{
    if (status != YOKE_E_DEVICE_LOST) return false;
    try {
        log_loss(device, take_backend_error(status, call).c_str());
    } catch (const std::bad_alloc &) {
        log_loss(device, status_name(status));
    }
    return true;
}

void keep_late_failure(const Device &device, yoke_status status, const std::string &text) noexcept
{
    if (status == YOKE_E_DEVICE_LOST)
        log_loss(device, text.c_str());
    else
        log(LogLevel::kWarn, "%s: found while waiting before a free: %s", device.name.c_str(),
            text.c_str());
    keep_failed_work(device, status, text);
}

void keep_failed_work(const Device &device, yoke_status status, const std::string &text) noexcept
{
    try {
        const std::lock_guard lock(late_failures.mutex);
        if (late_failures.failures.emplace(&device, Failure{status, text}).second)
            late_failures.count.fetch_add(1);
    } catch (...) {  // no memory for it: the log, or the work, tells it
    }
}

void forget_late_failure(const std::string &text) noexcept
{
    const std::lock_guard lock(late_failures.mutex);
    const size_t told = std::erase_if(late_failures.failures,
                                      [&](const auto &each) { return each.second.text == text; });
    late_failures.count.fetch_sub(static_cast<int>(told));
}

void tell_late_failure(const Device &device)
{
    if (late_failures.count.load(std::memory_order_acquire) == 0) return;
    Failure failure{YOKE_OK, ""};
    {
        const std::lock_guard lock(late_failures.mutex);
        const auto found = late_failures.failures.find(&device);
        if (found == late_failures.failures.end()) return;
        failure = std::move(found->second);
        late_failures.failures.erase(found);
        late_failures.count.fetch_sub(1);
    }
    throw Error(failure.status, failure.text);
}

}  // namespace yoke
