// cgroup.h: the control groups of this process, of version 1 and 2, and their limits.
//
// A group's limits hold for all groups below, so the lowest limit on the way to the root counts. Inside a container,
// the path given by the kernel may not exist below the mount; the mount's root is then the container's own group.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace yoke {

struct Groups {
    std::string proc;   // the text of /proc/self/cgroup
    std::string mount;  // the place of the cgroup file system

    // Returns the groups of this process.
    static Groups of_process();

    // Returns the number of processors that may be used; 0 if there is no limit.
    double processors() const;

    // Group with the least memory left. `used` leaves out memory that the kernel can reclaim, such as cached files.
    struct Memory {
        uint64_t limit = 0, used = 0;  // limit 0: there is none
        std::string file;              // in which the limit stands
        uint64_t left() const { return used < limit ? limit - used : 0; }
    };
    Memory memory() const;

private:
    // Visits every group that counts for a controller, from the process's own group to the root.
    void each(const char *controller,
              const std::function<void(const std::string &folder, bool version2)> &visit) const;
};

}  // namespace yoke
