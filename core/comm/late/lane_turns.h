// lane_turns.h: turns on the lanes of all devices of a launch.
#pragma once

#include "core/comm/late/comm_lane.h"

#include <optional>
#include <span>
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
    template <class F>
    LaneTurns(std::span<CommLane *> all, Deadline deadline, const F &is_over)
    {
        for (CommLane *each : sorted(all)) {
            turns_.emplace_back(*each, deadline, is_over);
            if (turns_.back().is_given()) continue;
            held_ = HeldLane{&each->device(), each->user()};
            return;
        }
    }
    // Raises HeldLane, with the other thread's call, if a turn was not given.
    void check_given() const;
    void note_user(const CommLane::User &user) noexcept;

private:
    // Sorts the lanes by device, and drops repeated lanes.
    static std::span<CommLane *> sorted(std::span<CommLane *> all);
    std::vector<CommLane::Turn> turns_;
    std::optional<HeldLane> held_;
};

}  // namespace yoke
