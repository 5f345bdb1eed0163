// step_terms.h: what a rank knows of a backward before the backward begins.
#pragma once

#include <cstdint>

namespace yoke {

// Whether a rank is in a join, and has run out of data. The small all_reduce of a backward has the number.
enum class Presence : int64_t { kPlain, kJoined, kOut };

struct StepTerms {
    bool is_synced = false;  // reduces gradients; else a backward adds up here (no_sync)
    bool is_alone = false;   // leaves keep their gradients themselves: the group has failed
    double weight = 1;
    Presence presence = Presence::kPlain;

    // Returns the call that errors name.
    const char *call() const noexcept { return presence == Presence::kOut ? "join" : "backward"; }
};

}  // namespace yoke
