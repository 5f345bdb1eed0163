#include "core/comm/late/device_engine.h"

#include "core/base/error.h"
#include "core/base/immortal.h"
#include "core/base/start_thread.h"

#include <algorithm>
#include <utility>

namespace yoke {

namespace {

// Engines of living groups.
struct Live {
    Mutex mutex{LockRank::kOther};
    std::vector<const DeviceEngine *> all;
};
Live &live = immortal<Live>();

void forget(const DeviceEngine *engine) noexcept
{
    const std::lock_guard lock(live.mutex);
    std::erase(live.all, engine);
}

}  // namespace

int64_t detail::live_communicators(Device &device, size_t most, std::vector<std::string> &names)
{
    const std::lock_guard lock(live.mutex);
    int64_t count = 0;
    for (const DeviceEngine *each : live.all) {
        if (&each->device() != &device) continue;
        if (static_cast<size_t>(count++) < most)
            names.push_back(format("a group of collectives with a communicator on %s (%s)",
                                   device.name.c_str(), each->whose().c_str()));
    }
    return count;
}

DeviceEngine::DeviceEngine(std::string whose, std::shared_ptr<CommLane> lane,
                           std::shared_ptr<Engine> engine,
                           std::shared_ptr<FailuresOfDevices> failures)
    : whose_(std::move(whose)),
      lane_(std::move(lane)),
      failures_(std::move(failures)),
      engine_(std::move(engine))
{
    const std::lock_guard lock(live.mutex);
    live.all.push_back(this);
}

DeviceEngine::~DeviceEngine()
{
    forget(this);
}

std::shared_ptr<Engine> DeviceEngine::engine() const noexcept
{
    const std::lock_guard lock(mutex_);
    return engine_;
}

void DeviceEngine::close() noexcept
{
    forget(this);
    std::shared_ptr<Engine> last;
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    if (asking_ == 0) last.swap(engine_);
}

void DeviceEngine::take(const Cause &cause, std::shared_future<void> dumped) noexcept
{
    if (is_aborted()) return;
    try {
        cause.raise();
    } catch (...) {
        failure_ = std::current_exception();
    }
    dumped_ = std::move(dumped);
    is_aborted_.store(true, std::memory_order_release);
    if (under_way_.load() > 0) failures_->keep(device(), failure_);
}

void DeviceEngine::abort() noexcept
{
    if (const std::shared_ptr<Engine> held = engine()) held->abort();
}

// Returns the failure that the engine has found by itself; null without a failure, or after the abort or the end. If
// the group ends during the question, another thread releases the communicator, not the watch thread.
std::optional<EngineFailure> DeviceEngine::async_error()
{
    Engine *asked = nullptr;
    {
        const std::lock_guard lock(mutex_);
        asked = is_closed_ || is_aborted() ? nullptr : engine_.get();
        if (!asked) return std::nullopt;
        ++asking_;
    }
    const struct Asking {
        ~Asking() { engine.end_asking(); }
        DeviceEngine &engine;
    } until_answered{*this};
    return asked->async_error();
}

void DeviceEngine::end_asking() noexcept
{
    std::shared_ptr<Engine> last;
    {
        const std::lock_guard lock(mutex_);
        if (--asking_ == 0 && is_closed_) last.swap(engine_);
    }
    if (last) (void)start_detached_thread([held = std::move(last)] {});
}

void DeviceEngine::note_told() noexcept
{
    if (!is_aborted()) return;
    if (dumped_.valid()) dumped_.wait();
    failures_->note_told(failure_);
}

}  // namespace yoke
