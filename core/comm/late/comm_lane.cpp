#include "core/comm/late/comm_lane.h"

#include "core/base/immortal.h"
#include "core/device/inner_stream.h"

#include <map>

namespace yoke {

namespace {

struct Lanes {
    Mutex mutex{LockRank::kOther};
    std::map<const Device *, std::weak_ptr<CommLane>> by_device;
};
Lanes &lanes = immortal<Lanes>();

}  // namespace

CommLane::CommLane(Device &device) : stream_(make_inner_stream(device)) {}

CommLane::Turn::~Turn()
{
    if (!lane_) return;
    {
        const std::lock_guard lock(lane_->mutex_);
        lane_->user_.reset();
    }
    lane_->turn_.unlock();
}

void CommLane::Turn::note_user(const User &user) noexcept
{
    const std::lock_guard lock(lane_->mutex_);
    lane_->user_ = user;
}

std::optional<CommLane::User> CommLane::user() const noexcept
{
    const std::lock_guard lock(mutex_);
    return user_;
}

std::shared_ptr<CommLane> CommLane::of(Device &device)
{
    {
        const std::lock_guard lock(lanes.mutex);
        if (auto known = lanes.by_device[&device].lock()) return known;
    }
    auto made =
        std::make_shared<CommLane>(device);  // without the lock, because the backend makes a stream
    const std::lock_guard lock(lanes.mutex);
    std::weak_ptr<CommLane> &place = lanes.by_device[&device];
    if (auto known = place.lock()) return known;
    place = made;
    return made;
}

}  // namespace yoke
