// flight.h: a call in flight, and the watch thread's state of the first call.
#pragma once

#include "core/comm/late/late_call.h"

#include <cstdint>
#include <optional>

namespace yoke {

// Call in flight, and the number of its record.
struct Flight {
    Ref<LateCall> call;
    uint64_t record = 0;
    bool has_ended = false;  // false: aborted
};

// State of the watch over the first call of a group.
struct WatchedFlight {
    const LateCall *head = nullptr;
    // Time at which the call became the first, and time of the last question to its engine.
    Deadline::Clock::time_point since, asked_engine;
    bool has_failed = false;  // a failure is reported once
    std::optional<EngineFailure> found;
};

}  // namespace yoke
