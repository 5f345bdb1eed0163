// blame.h: the rank to blame for a failed call of an engine.
//
// An engine reports an ended connection, or the rank for which it waited, but not the reason. So the ranks publish
// their knowledge in the store. The missed rank may have left, may itself wait for another rank, or its call may have
// been refused.
#pragma once

#include "core/comm/departures.h"
#include "core/comm/engine.h"
#include "core/comm/group_keys.h"

#include <optional>
#include <span>
#include <string>

namespace yoke {

// Questions of a rank about the other ranks, asked in the thread of the call. There is no lock, because the class
// keeps no state of its own.
class Blame {
public:
    Blame(const Members &members, const GroupKeys &keys, const Departures &departures)
        : members_(members), keys_(keys), departures_(departures)
    {
    }

    // Returns the cause of a failure in this call. If a call of the engine's library has not returned, this rank
    // names itself, and publishes no missed rank, so the waiting ranks name this rank too. Sets *can_agree to false
    // if the store for the agreement does not answer after a deadline.
    Cause cause_of(const EngineFailure &failure, const CurrentCall &current, bool *can_agree) const;
    // Returns the first of these ranks that has gone, or -1. If `has_died`, only ranks known to have died count.
    // Serves yoke_collective::find_gone.
    int32_t find_gone(std::span<const int32_t> ranks, bool has_died) const noexcept;

private:
    Suspects find_suspects(int32_t missed, const CurrentCall &current) const;
    Suspects suspects_or_server(int32_t missed, const CurrentCall &current, bool *can_agree) const;
    std::string refusal_in(int32_t rank, const CurrentCall &current) const;
    std::optional<std::string> how_it_left(const yoke_comm_fault &fault) const noexcept;

    const Members &members_;
    const GroupKeys &keys_;
    const Departures &departures_;
};

}  // namespace yoke
