// lane_turns.h: turns on the lanes of all devices of a launch.
#pragma once

#include "core/comm/late/comm_lane.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Lane in another thread's turn. Thrown if the other thread does not end its turn.
struct HeldLane {
    const Device *device;
    std::optional<CommLane::User> user;

    // Returns a text for people: which call of another thread has the lane, so the group with this number cannot go
    // on.
    std::string text(uint64_t group) const;
};

class LaneTurns {
public:
    // Takes the turns in the order of their devices, so two threads do not wait for each other. Stops at the
    // deadline, or when is_over() is true; check_given then raises.
    LaneTurns(std::vector<CommLane *> all, Deadline deadline, const std::function<bool()> &is_over);
    // Raises HeldLane, with the other thread's call, if a turn was not given.
    void check_given() const;
    void note_user(const CommLane::User &user) noexcept;

private:
    std::vector<CommLane::Turn> turns_;
    std::optional<HeldLane> held_;
};

}  // namespace yoke
