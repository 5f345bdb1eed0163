// init.h: how a process comes to its groups.
#pragma once

#include "core/comm/group.h"

namespace yoke {

// Raises YOKE_E_VALUE for a time that is not above 0.
void check_seconds(double seconds, const char *argument, const char *call);

struct InitOptions {
    // "": the host's engine, and for tensors of devices theirs, if all ranks have one.
    std::string backend = "";
    Device *device = nullptr;  // of the collectives; null: that of the first one's tensor
    InitArguments arguments;
    double timeout_s = 600, init_timeout_s = 300;
    HostStore *host_store = nullptr;  // by which ranks find rank 0; borrowed for the call
};

// The group of all ranks that whoever launched this process tells of; the default group, if there is none yet. Raises
// as meet() does.
Ref<Group> init_group(const InitOptions &options, const char *call);

// Group::shrink; the new group takes the place of the default one, where that has been shrunk.
Ref<Group> shrink_group(Group &group, double seconds);

// Raises YOKE_E_STATE where there is none.
Ref<Group> default_group(const char *call);
// Nothing where there is none, and where it has no other rank on this machine.
std::optional<int32_t> local_rank_in_default_group();
void finalize_groups() noexcept;
// Leaves all groups, at the end of the process. Returns false if calls on devices wait for ranks that do not come:
// their groups are left behind.
bool leave_groups();

}  // namespace yoke
