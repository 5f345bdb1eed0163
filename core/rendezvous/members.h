// members.h: the ranks of a group, and the store and watcher that they share beside the group's engine.
#pragma once

#include "core/rendezvous/rendezvous.h"
#include "core/rendezvous/watcher.h"

#include <algorithm>
#include <functional>
#include <string>

namespace yoke {

// Returns a number made of the group's name, never 0. Ranks that use the same name get the same number; other groups
// of the job get another number.
inline uint64_t number_of_group(const std::string &name)
{
    return std::hash<std::string>()(name) | 1;
}

struct Members {
    int32_t rank = 0;
    std::vector<RankInfo> ranks;   // by rank
    uint64_t number = 0;           // group's number: alike on all ranks, different for each group
    std::shared_ptr<Store> store;  // with keys of this group's own
    // Rendezvous of the ranks. It lives as long as any group made there: then rank 0's server sends its goodbye
    // message. Null for threads.
    std::shared_ptr<const Rendezvous> met = {};
    // News of the connections of that rendezvous. The news use the rank numbers of the rendezvous.
    std::shared_ptr<Watcher> watcher = {};
    std::vector<int32_t> met_as = {};  // by rank
    bool is_again = false;             // earlier groups met here: on failure, the ranks meet anew

    int32_t size() const noexcept { return static_cast<int32_t>(ranks.size()); }
    const RankInfo &self() const { return ranks[static_cast<size_t>(rank)]; }
    const RankInfo &at(int32_t which) const { return ranks[static_cast<size_t>(which)]; }
    // Returns the rank that serves the store, or -1 if no rank of this group does. The store of a subgroup is served
    // by a rank of the job.
    int32_t server() const noexcept
    {
        if (!met) return -1;
        const auto found = std::find(met_as.begin(), met_as.end(), met->server_rank);
        return found == met_as.end() ? -1 : static_cast<int32_t>(found - met_as.begin());
    }
};

}  // namespace yoke
