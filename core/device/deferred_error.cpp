#include "core/device/deferred_error.h"

#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>

namespace yoke {

namespace {

struct DeferredError {
    yoke_status status;
    std::string text;
    uint64_t failure;  // its number
};
struct DeferredErrors {
    Mutex mutex{LockRank::kOther};
    std::map<const Device *, DeferredError> by_device;
    std::atomic<int> count{0};  // lets a call without deferred errors take no lock
};
DeferredErrors &deferred_errors = immortal<DeferredErrors>();

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

void defer_error(const Device &device, yoke_status status, const std::string &text) noexcept
{
    if (status == YOKE_E_DEVICE_LOST)
        log_loss(device, text.c_str());
    else
        log(LogLevel::kWarn, "%s: found while waiting before a free: %s", device.name.c_str(),
            text.c_str());
    defer_error_of_work(device, status, text, new_failure_number());
}

void defer_error_of_work(const Device &device, yoke_status status, const std::string &text,
                         uint64_t failure) noexcept
{
    try {
        const std::lock_guard lock(deferred_errors.mutex);
        if (deferred_errors.by_device.emplace(&device, DeferredError{status, text, failure}).second)
            deferred_errors.count.fetch_add(1);
    } catch (...) {  // without memory, the log or the work reports the error
    }
}

void forget_deferred_error(uint64_t failure) noexcept
{
    const std::lock_guard lock(deferred_errors.mutex);
    const size_t told = std::erase_if(deferred_errors.by_device, [&](const auto &each) {
        return each.second.failure == failure;
    });
    deferred_errors.count.fetch_sub(static_cast<int>(told));
}

namespace {

struct UnsettledWork {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const Device *, std::set<uint64_t>> by_device;
    uint64_t last = 0;          // number that was given
    std::atomic<int> count{0};  // lets a wait without unsettled work take no lock
};
UnsettledWork &unsettled = immortal<UnsettledWork>();
thread_local bool settles_here = false;

// Waits until all work of the device unsettled at the call is settled; not for work begun meanwhile. A thread that
// settles work does not wait, nor does a forked child.
void await_settled(const Device &device)
{
    const bool is_none = unsettled.count.load(std::memory_order_acquire) == 0;
    if (is_none || settles_here || is_forked_child()) return;
    std::unique_lock lock(unsettled.mutex);
    const uint64_t last = unsettled.last;
    const std::set<uint64_t> &here = unsettled.by_device[&device];
    wait_until(unsettled.changed, lock, Deadline::never(),
               [&] { return here.empty() || *here.begin() > last; });
}

}  // namespace

void Unsettled::begin(const Device &device) noexcept
try {
    if (device_) return;  // a later wait waits for this number
    const std::lock_guard lock(unsettled.mutex);
    unsettled.by_device[&device].insert(unsettled.last + 1);
    number_ = ++unsettled.last;
    device_ = &device;
    unsettled.count.fetch_add(1);
} catch (const std::bad_alloc &) {
}

void Unsettled::settle() noexcept
{
    if (!device_) return;
    const std::lock_guard lock(unsettled.mutex);
    unsettled.by_device[device_].erase(number_);
    unsettled.count.fetch_sub(1);
    unsettled.changed.notify_all();
    device_ = nullptr;
}

void Unsettled::settle_here() noexcept
{
    settles_here = true;
}

void raise_deferred_error(const Device &device)
{
    await_settled(device);
    if (deferred_errors.count.load(std::memory_order_acquire) == 0) return;
    DeferredError error{YOKE_OK, "", 0};
    {
        const std::lock_guard lock(deferred_errors.mutex);
        const auto found = deferred_errors.by_device.find(&device);
        if (found == deferred_errors.by_device.end()) return;
        error = std::move(found->second);
        deferred_errors.by_device.erase(found);
        deferred_errors.count.fetch_sub(1);
    }
    throw Error(error.status, error.text).telling(error.failure);
}

}  // namespace yoke
