// step_terms.h: knowledge of a rank about a backward, before the backward begins.
#pragma once

#include <cstdint>

namespace yoke {

// Whether a rank is in a join, and has run out of data. A backward's small all_reduce contains the number.
enum class Presence : int64_t { kPlain, kJoined, kOut };

struct StepTerms {
    bool is_synced = false;  // reduces gradients; else a backward adds up here (no_sync)
    bool is_alone = false;   // the group has failed: leaves keep their own gradients
    double weight = 1;
    Presence presence = Presence::kPlain;

    // Returns the name of the call for errors.
    const char *call() const noexcept { return presence == Presence::kOut ? "join" : "backward"; }
};

}  // namespace yoke
