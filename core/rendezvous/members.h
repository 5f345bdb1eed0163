// members.h: the ranks of a group, and what they agree by beside its engine.
#pragma once

#include "core/rendezvous/rendezvous.h"
#include "core/rendezvous/watcher.h"

#include <algorithm>
#include <functional>
#include <string>

namespace yoke {

// A number that no other group of the job has, whose ranks name it alike.
inline uint64_t number_of_group(const std::string &name)
{
    return std::hash<std::string>()(name) | 1;
}

struct Members {
    int32_t rank = 0;
    std::vector<RankInfo> ranks;   // by rank
    uint64_t number = 0;           // of the group: alike on all ranks, and no other group's
    std::shared_ptr<Store> store;  // with keys of this group's own
    // Where the ranks met, for as long as one of the groups lives that were made there: rank 0's server says farewell
    // with it. Null for threads.
    std::shared_ptr<const Rendezvous> met = {};
    // What is heard there of connections, which have the numbers that the ranks had there.
    std::shared_ptr<Watcher> watcher = {};
    std::vector<int32_t> met_as = {};  // by rank
    bool is_again = false;  // made where others were before: where that fails its ranks meet anew

    int32_t size() const noexcept { return static_cast<int32_t>(ranks.size()); }
    const RankInfo &self() const { return ranks[static_cast<size_t>(rank)]; }
    const RankInfo &at(int32_t which) const { return ranks[static_cast<size_t>(which)]; }
    // Returns the rank that keeps the table by which ranks agree, or -1 where none of this group does: of a part, a
    // rank of the job.
    int32_t server() const noexcept
    {
        if (!met) return -1;
        const auto found = std::find(met_as.begin(), met_as.end(), met->server_rank);
        return found == met_as.end() ? -1 : static_cast<int32_t>(found - met_as.begin());
    }
};

}  // namespace yoke
