#include "core/device/deferred_error.h"

#include "core/base/immortal.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>

namespace yoke {

namespace {

struct DeferredError {
    yoke_status status;
    std::string text;
    uint64_t failure;  // number of the failure
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
    log(LogLevel::kWarn, "%s: an earlier error was found at the release of memory and handles: %s",
        device.name.c_str(), text);
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
        log(LogLevel::kWarn, "%s: an earlier error was found during the wait before a free: %s",
            device.name.c_str(), text.c_str());
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

struct Issued {
    uint64_t number;
    bool is_followed;  // a stream has come behind the work
};

struct UnsettledWork {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<const Device *, std::vector<Issued>> by_device;  // in the order of their numbers
    std::map<const Device *, std::map<const Device *, uint64_t>> sources;  // last number at a copy
    uint64_t last = 0;                                                     // number that was given
    std::atomic<int> count{0};  // lets a wait without unsettled work take no lock

    // Forgets the copies if no error is deferred, once all work is settled: what was copied is right then.
    void drop_sources() noexcept
    {
        if (deferred_errors.count.load(std::memory_order_acquire) == 0) sources.clear();
    }
    // Returns the first number of `device`, up to `most`, for which a wait waits; 0 if there is none.
    uint64_t first(const Device &device, uint64_t most, Behind behind) const
    {
        const auto here = by_device.find(&device);
        if (here == by_device.end()) return 0;
        for (const Issued &each : here->second)
            if (each.number > most)
                break;
            else if (each.is_followed || behind == Behind::kAll)
                return each.number;
        return 0;
    }
    std::vector<Issued>::iterator find(const Device &device, uint64_t number)
    {
        return std::ranges::lower_bound(by_device[&device], number, {}, &Issued::number);
    }
    bool holds_up(const Device &device, uint64_t most, Behind behind) const
    {
        if (first(device, most, behind)) return true;
        const auto copied = sources.find(&device);
        return copied != sources.end() &&
               std::ranges::any_of(copied->second, [&](const auto &each) {
                   return first(*each.first, std::min(most, each.second), Behind::kFollowed) != 0;
               });
    }
};
UnsettledWork &unsettled = immortal<UnsettledWork>();
thread_local bool settles_here = false;

// Returns whether the calling thread must look for unsettled work. A thread that settles work does not wait, nor does
// a forked child.
bool may_wait() noexcept
{
    const bool is_none = unsettled.count.load(std::memory_order_acquire) == 0;
    return !is_none && !settles_here && !is_forked_child();
}

// Waits until all work of the device unsettled at the call is settled; not for work begun meanwhile. Raises
// Interrupted.
void await_settled(const Device &device, Behind behind)
{
    if (!may_wait()) return;
    const Interruptible waits("wait for a collective");
    std::unique_lock lock(unsettled.mutex);
    const uint64_t last = unsettled.last;
    wait_until(unsettled.changed, lock, Deadline::never(),
               [&] { return !unsettled.holds_up(device, last, behind); });
}

// Returns the device, and devices whose memory was copied to the device before all their work was settled.
std::set<const Device *> with_sources(const Device &device)
{
    std::set<const Device *> all{&device};
    const std::lock_guard lock(unsettled.mutex);
    const auto copied = unsettled.sources.find(&device);
    if (copied != unsettled.sources.end())
        for (const auto &each : copied->second) all.insert(each.first);
    return all;
}

void forget_copies_if_settled() noexcept
{
    const std::lock_guard lock(unsettled.mutex);
    if (unsettled.count.load(std::memory_order_acquire) == 0) unsettled.drop_sources();
}

}  // namespace

bool has_unsettled(const Device &device) noexcept
{
    if (!may_wait()) return false;
    const std::lock_guard lock(unsettled.mutex);
    return unsettled.holds_up(device, unsettled.last, Behind::kFollowed);
}

void note_copied(const Device &target, const Device &source) noexcept
try {
    const bool is_sure = unsettled.count.load(std::memory_order_acquire) == 0 &&
                         deferred_errors.count.load(std::memory_order_acquire) == 0;
    if (is_sure) return;
    const std::lock_guard lock(unsettled.mutex);
    auto copied = unsettled.sources[&source];
    copied[&source] = unsettled.last;
    for (const auto &[each, number] : copied)
        if (each != &target) unsettled.sources[&target][each] = number;
} catch (const std::bad_alloc &) {
}

void Unsettled::begin(const Device &device, Behind reads) noexcept
try {
    if (device_) return;
    const std::lock_guard lock(unsettled.mutex);
    unsettled.by_device[&device].push_back({unsettled.last + 1, reads == Behind::kFollowed});
    number_ = ++unsettled.last;
    device_ = &device;
    unsettled.count.fetch_add(1);
} catch (const std::bad_alloc &) {
}

// Numbers grow with the calls' order, so a wait that has begun may miss this call: its stream came behind later.
void Unsettled::note_followed() noexcept
{
    if (!device_) return;
    const std::lock_guard lock(unsettled.mutex);
    unsettled.find(*device_, number_)->is_followed = true;
}

void Unsettled::settle() noexcept
{
    if (!device_) return;
    const std::lock_guard lock(unsettled.mutex);
    unsettled.by_device[device_].erase(unsettled.find(*device_, number_));
    if (unsettled.count.fetch_sub(1) == 1) unsettled.drop_sources();
    unsettled.changed.notify_all();
    device_ = nullptr;
}

void Unsettled::settle_here() noexcept
{
    settles_here = true;
}

void raise_deferred_error(const Device &device, Behind behind)
{
    await_settled(device, behind);
    if (deferred_errors.count.load(std::memory_order_acquire) == 0) return;
    const std::set<const Device *> all = with_sources(device);
    DeferredError error{YOKE_OK, "", 0};
    {
        const std::lock_guard lock(deferred_errors.mutex);
        const auto found = std::ranges::find_if(
            deferred_errors.by_device, [&](const auto &each) { return all.contains(each.first); });
        if (found == deferred_errors.by_device.end()) return;
        error = std::move(found->second);
        deferred_errors.by_device.erase(found);
        deferred_errors.count.fetch_sub(1);
    }
    forget_copies_if_settled();
    throw Error(error.status, error.text).telling(error.failure);
}

}  // namespace yoke
