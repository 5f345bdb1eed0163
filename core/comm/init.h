// init.h: how a process comes to its groups.
#pragma once

#include "core/comm/group.h"

namespace yoke {

struct InitOptions {
    std::string backend = "";  // "": the host's engine, which stages tensors of devices
    InitArguments arguments;
    double timeout_s = 600, init_timeout_s = 300;
    HostStore *host_store = nullptr;  // by which ranks find rank 0; borrowed for the call
};

// The group of all ranks that whoever launched this process tells of; the default group, if there is none yet. Raises
// as meet() does.
Ref<Group> init_group(const InitOptions &options, const char *call);

// Groups whose ranks are threads of this process, at most YOKE_MAX_RANKS.
std::vector<Ref<Group>> init_threads(int32_t size, double timeout_s, const char *call);

// Group::shrink; the new group takes the place of the default one, where that has been shrunk.
Ref<Group> shrink_group(Group &group, double seconds);

// Raises YOKE_E_STATE where there is none.
Ref<Group> default_group(const char *call);
// Nothing where there is none, and where it has no other rank on this machine.
std::optional<int32_t> local_rank_in_default_group();
void finalize_groups() noexcept;

}  // namespace yoke
