// living_groups.h: process groups with a living member.
//
// A group exists until its leader is waited for. So kill() cannot report whether other members live.
#pragma once

#include <sys/types.h>

#include <vector>

namespace yoke {

// Snapshot of the groups, taken by the constructor. Zombies count as dead.
class LivingGroups {
public:
    LivingGroups();
    // Returns whether the group has a living member. Returns true as well if the system shows no processes.
    bool may_have(pid_t group) const;

private:
    bool is_known_ = false;
    std::vector<pid_t> groups_;
};

}  // namespace yoke
