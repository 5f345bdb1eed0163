#include "core/comm/late/lane_turns.h"

#include "core/base/text.h"
#include "core/comm/cause_of.h"

#include <algorithm>
#include <utility>

namespace yoke {

std::string HeldLane::text(uint64_t group) const
{
    CurrentCall current;
    if (user) current = {user->signature, describe(user->line), user->from};
    return format(
        "another thread holds the stream for collectives on %s, in %s%s, and the engine has not returned; the engine or the driver hangs on this rank",
        device->name.c_str(), user ? told_as(current).c_str() : "an unknown call",
        user && user->signature.group != group ? " of another group" : "");
}

std::span<CommLane *> LaneTurns::sorted(std::span<CommLane *> all)
{
    std::ranges::sort(all, {}, [](const CommLane *lane) { return lane->device().ordinal; });
    return {all.begin(), std::unique(all.begin(), all.end())};
}

void LaneTurns::check_given() const
{
    if (held_) throw *held_;
}

void LaneTurns::note_user(const CommLane::User &user) noexcept
{
    for (CommLane::Turn &each : turns_) each.note_user(user);
}

}  // namespace yoke
