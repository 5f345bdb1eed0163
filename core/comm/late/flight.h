// flight.h: a call in flight, and what the watch thread knows of the first one.
#pragma once

#include "core/comm/late/late_call.h"

#include <cstdint>
#include <optional>

namespace yoke {

// A call, and the number of its record.
struct Flight {
    Ref<LateCall> call;
    uint64_t record = 0;
    bool has_ended = false;  // else it was aborted
};

// State of the watch over the first call of a group.
struct WatchedFlight {
    const LateCall *head = nullptr;
    // When the call became the first, and when its engine was asked last.
    Deadline::Clock::time_point since, asked_engine;
    bool has_failed = false;  // a failure is told, once
    std::optional<EngineFailure> found;
};

}  // namespace yoke
