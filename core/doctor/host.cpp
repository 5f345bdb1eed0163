// Checks 35, 36 and 46: processors, shared and locked memory, and the folder of leases.
#include "core/base/error.h"
#include "core/doctor/checks.h"

#include <cstdlib>

namespace yoke::doctor {

Finding check_thread_quota(const Facts &facts)
{
    const int granted = facts.quota > 0 ? std::max(1, static_cast<int>(facts.quota)) : 0;
    if (granted == 0) return ok(format("no quota; %d processors", facts.processors));
    for (const char *name : {"YOKE_NUM_THREADS", "OMP_NUM_THREADS"}) {
        const int threads = atoi(facts.variable(name).c_str());
        if (threads > granted)
            return found(
                kWarn,
                format("%s is %d, but the cgroup grants %.2f processors: threads take turns "
                       "and stand still",
                       name, threads, facts.quota),
                format("export %s=%d", name, granted));
    }
    if (!facts.is_set("OMP_NUM_THREADS") && facts.processors > granted)
        return found(kWarn,
                     format("the cgroup grants %.2f of %d processors. Yoke takes %d threads; other "
                            "libraries start %d",
                            facts.quota, facts.processors, granted, facts.processors),
                     format("export OMP_NUM_THREADS=%d", granted));
    return ok(format("the cgroup grants %.2f processors, and threads keep to that", facts.quota));
}

Finding check_shared_memory(const Facts &facts)
{
    constexpr long long kLeast = 256ll << 20;
    Findings all;
    if (facts.shared_memory >= 0 && facts.shared_memory < kLeast)
        all.add(kWarn,
                "/dev/shm holds " + mebibytes(static_cast<double>(facts.shared_memory)) +
                    "; data loaders and NCCL need more",
                facts.in_container() ? "docker run --shm-size=8g … # or --ipc=host"
                                     : "sudo mount -o remount,size=8G /dev/shm");
    bool network = false;
    for (const NetworkCard &each : facts.machine.networks) network |= each.info.active == 1;
    if (network && facts.locked_memory >= 0 && facts.locked_memory < 1ll << 30)
        all.add(kWarn,
                "at most " + mebibytes(static_cast<double>(facts.locked_memory)) +
                    " may be locked; InfiniBand locks what it sends",
                facts.in_container()
                    ? "docker run --ulimit memlock=-1 …"
                    : "ulimit -l unlimited # for good: echo '* - memlock unlimited' "
                      "| sudo tee /etc/security/limits.d/memlock.conf");
    if (facts.shared_memory < 0 && all.empty()) return skip("the size of /dev/shm is not known");
    return all.or_ok("/dev/shm holds " + mebibytes(static_cast<double>(facts.shared_memory)));
}

Finding check_lease_folder(const Facts &facts)
{
    const LeaseFolder &leases = facts.leases;
    if (!leases.exists && leases.named)
        return found(kFail, "YOKE_LEASE_DIR is '" + leases.path + "', which does not exist",
                     "sudo install -d -m 1777 " + leases.path);
    if (!leases.exists) return ok(leases.path + " will be made when it is needed");
    if (!leases.writable)
        return found(kFail, leases.path + " may not be written by this user",
                     "sudo chmod 1777 " + leases.path);
    if (facts.in_container() && !leases.shared && no_gpus(facts) == "")
        return found(kWarn,
                     leases.path +
                         " is this container's own: other containers do not see leases "
                         "that are held here",
                     "docker run -v " + leases.path + ":" + leases.path + " …");
    return ok(leases.path + " can be used");
}

}  // namespace yoke::doctor
