// comm_lane.h: the stream of a device on which the collectives of all groups run.
//
// If each group had a stream of its own, ranks could launch on their streams in unlike orders. The library of the
// engine would then wait for its own kernels.
#pragma once

#include "core/device/stream.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

namespace yoke {

class CommLane {
public:
    // Returns the lane of the device, which lives as long as somebody holds it. Raises YOKE_E_UNSUPPORTED if the
    // backend has no streams.
    static std::shared_ptr<CommLane> of(Device &device);

    explicit CommLane(Device &device);
    CommLane(const CommLane &) = delete;
    CommLane &operator=(const CommLane &) = delete;

    Device &device() const noexcept { return *stream_->lane.device; }
    Stream &stream() const noexcept { return *stream_; }
    uint8_t id() const noexcept { return stream_->lane.id; }
    // Returns the lock that is held while calls get their places in the orders of their group and of the stream.
    std::mutex &mutex() noexcept { return mutex_; }
    // Returns the place of the next call on the stream, with the lock held.
    uint64_t next_place() noexcept { return ++places_; }

private:
    const Ref<Stream> stream_;
    std::mutex mutex_;
    uint64_t places_ = 0;
};

}  // namespace yoke
