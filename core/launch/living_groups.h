// living_groups.h: which process groups have a member that lives.
//
// A group exists as long as its leader is not waited for, so kill() does not tell whether that one is all that is left.
#pragma once

#include <sys/types.h>

#include <vector>

namespace yoke {

// As it is when this is made. Zombies do not live.
class LivingGroups {
public:
    LivingGroups();
    // Also where the system tells nothing.
    bool may_have(pid_t group) const;

private:
    bool is_known_ = false;
    std::vector<pid_t> groups_;
};

}  // namespace yoke
