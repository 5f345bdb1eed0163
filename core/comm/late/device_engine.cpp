#include "core/comm/late/device_engine.h"

#include "core/comm/late/call_watch.h"

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
    last.swap(engine_);
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

std::optional<EngineFailure> DeviceEngine::async_error() const
{
    std::shared_ptr<Engine> asked = engine();
    if (!asked || is_aborted()) return std::nullopt;
    std::optional<EngineFailure> failure = asked->async_error();
    if (asked.use_count() == 1) CallWatch::leave(std::move(asked));
    return failure;
}

void DeviceEngine::note_told() noexcept
{
    if (is_aborted()) failures_->note_told(failure_);
}

}  // namespace yoke
