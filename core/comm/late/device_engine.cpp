#include "core/comm/late/device_engine.h"

#include "core/base/start_thread.h"

#include <utility>

namespace yoke {

DeviceEngine::DeviceEngine(std::shared_ptr<CommLane> lane, std::shared_ptr<Engine> engine,
                           std::shared_ptr<FailuresOfDevices> failures)
    : lane_(std::move(lane)), failures_(std::move(failures)), engine_(std::move(engine))
{
}

std::shared_ptr<Engine> DeviceEngine::engine() const noexcept
{
    const std::lock_guard lock(mutex_);
    return engine_;
}

void DeviceEngine::close() noexcept
{
    std::shared_ptr<Engine> last;
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    if (asking_ == 0) last.swap(engine_);
}

void DeviceEngine::abort(const Cause &cause) noexcept
{
    if (is_aborted()) return;
    try {
        cause.raise();
    } catch (...) {
        failure_ = std::current_exception();
    }
    is_aborted_.store(true, std::memory_order_release);
    if (under_way_.load() > 0) failures_->keep(device(), failure_);
    if (const std::shared_ptr<Engine> held = engine()) held->abort();
}

// If the group has ended meanwhile, another thread lets go of the communicator: the watch thread does not.
std::optional<EngineFailure> DeviceEngine::async_error()
{
    Engine *asked = nullptr;
    {
        const std::lock_guard lock(mutex_);
        asked = is_closed_ || is_aborted() ? nullptr : engine_.get();
        if (!asked) return std::nullopt;
        ++asking_;
    }
    std::optional<EngineFailure> failure = asked->async_error();
    std::shared_ptr<Engine> last;
    {
        const std::lock_guard lock(mutex_);
        if (--asking_ == 0 && is_closed_) last.swap(engine_);
    }
    if (last) (void)start_detached_thread([held = std::move(last)] {});
    return failure;
}

void DeviceEngine::note_told() noexcept
{
    if (is_aborted()) failures_->note_told(failure_);
}

}  // namespace yoke
