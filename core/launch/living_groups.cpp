#include "core/launch/living_groups.h"

#include "core/launch/child.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <memory>

namespace yoke {

namespace {

// Returns the group of a process of /proc; -1: the process does not live.
pid_t group_of(int proc, const char *process)
{
    const std::string path = std::string(process) + "/stat";
    const OwnedFile file(openat(proc, path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[256] = "";  // number, name in parentheses, state, parent, group
    if (!file.is_open() || read(file.get(), text, sizeof text - 1) <= 0) return -1;
    const char *name_end = strrchr(text, ')');
    char state = 'X';
    int group = -1;
    if (!name_end || sscanf(name_end + 1, " %c %*d %d", &state, &group) != 2) return -1;
    return state == 'Z' || state == 'X' ? -1 : group;
}

}  // namespace

LivingGroups::LivingGroups()
{
    const std::unique_ptr<DIR, int (*)(DIR *)> proc(opendir("/proc"), closedir);
    if (!proc) return;
    while (const dirent *entry = readdir(proc.get())) {
        if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
        is_known_ = true;
        groups_.push_back(group_of(dirfd(proc.get()), entry->d_name));
    }
}

bool LivingGroups::may_have(pid_t group) const
{
    return !is_known_ || std::find(groups_.begin(), groups_.end(), group) != groups_.end();
}

}  // namespace yoke
