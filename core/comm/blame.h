// blame.h: which rank is to blame where a call of an engine fails.
//
// An engine tells which connection ended, or for which rank the engine waited. The engine does not know why, so the
// ranks tell each other in the store: the missed rank may have left, may wait for another rank itself, or its call may
// have been refused.
#pragma once

#include "core/comm/departures.h"
#include "core/comm/engine.h"
#include "core/comm/group_keys.h"

#include <optional>
#include <span>
#include <string>

namespace yoke {

// Questions of one rank about the others, asked in the thread of the call. It has no lock: it keeps nothing of its own.
class Blame {
public:
    Blame(const Members &members, const GroupKeys &keys, const Departures &departures)
        : members_(members), keys_(keys), departures_(departures)
    {
    }

    // Returns the cause of a failure in that call. A rank in which a call of the engine's library has not returned
    // names itself, and tells nobody whom it misses: so the ranks that wait for it name it too. Sets *can_agree to
    // false if the table by which ranks agree does not answer after a deadline.
    Cause cause_of(const EngineFailure &failure, const CurrentCall &current, bool *can_agree) const;
    // Returns the first of these ranks that has gone, or -1, as yoke_collective::find_gone has it. If `has_died`, only
    // a rank counts that is known to have died.
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
