// init.h: the way of a process to its groups.
#pragma once

#include "core/comm/group.h"

namespace yoke {

// Raises YOKE_E_VALUE for a time that is not above 0.
void check_seconds(double seconds, const char *argument, const char *call);

struct InitOptions {
    // "": the host engine, and for tensors of devices the devices' engine, if all ranks have it.
    std::string backend = "";
    Device *device = nullptr;  // device of the collectives; null: device of the first tensor
    InitArguments arguments;
    double timeout_s = 600, init_timeout_s = 300;
    HostStore *host_store = nullptr;  // way to rank 0; borrowed for the call
};

// Makes and returns the group of all ranks that the launcher names. The group becomes the default group, unless this
// process has a default group that has not failed. Raises as meet() does.
Ref<Group> init_group(const InitOptions &options, const char *call);

// Calls Group::shrink and returns the new group. If the default group was shrunk, the new group becomes the default
// group.
Ref<Group> shrink_group(Group &group, double seconds);

// Returns the default group. Raises YOKE_E_STATE if there is no default group.
Ref<Group> default_group(const char *call);
// Returns this rank's number on its machine, from the default group. Returns null without a default group, or if the
// group has no other rank on this machine.
std::optional<int32_t> local_rank_in_default_group();
void finalize_groups() noexcept;
// Leaves all groups, at the end of the process. Returns false if calls on devices wait for missing ranks; the groups
// of these calls are left behind.
bool leave_groups();

}  // namespace yoke
