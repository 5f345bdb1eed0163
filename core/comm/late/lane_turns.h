// lane_turns.h: turns on the lanes of all devices that a launch uses.
#pragma once

#include "core/comm/late/comm_lane.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace yoke {

// Lane whose turn another thread has. Raised where that thread does not end its turn.
struct HeldLane {
    const Device *device;
    std::optional<CommLane::User> user;

    // Returns why a group of that number cannot go on.
    std::string text(uint64_t group) const;
};

class LaneTurns {
public:
    // Takes the turns in the order of their devices, so that two threads do not wait for each other. Waits until the
    // deadline, or until is_over().
    LaneTurns(std::vector<CommLane *> all, Deadline deadline, const std::function<bool()> &is_over);
    // Raises HeldLane if a turn was not given.
    void check_given() const;
    void note_user(const CommLane::User &user) noexcept;

private:
    std::vector<CommLane::Turn> turns_;
    std::optional<HeldLane> held_;
};

}  // namespace yoke
