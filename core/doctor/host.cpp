// Checks 35, 36, 46 and 51: processors, shared, locked and other memory, and the folder of leases.
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
                format(
                    "%s is %d, but the cgroup grants %.2f processors: threads wait for each other",
                    name, threads, facts.quota),
                format("export %s=%d", name, granted));
    }
    if (!facts.is_set("OMP_NUM_THREADS") && facts.processors > granted)
        return found(
            kWarn,
            format(
                "the cgroup grants %.2f of %d processors. Yoke starts %d threads; other libraries start %d",
                facts.quota, facts.processors, granted, facts.processors),
            format("export OMP_NUM_THREADS=%d", granted));
    return ok(
        format("the cgroup grants %.2f processors, and there are not more threads", facts.quota));
}

Finding check_shared_memory(const Facts &facts)
{
    // NCCL's guide asks for 1 GiB where GPUs of a machine share memory; data loaders alone fill less.
    const bool several = working_gpus(facts).size() > 1;
    const long long least = several ? 1ll << 30 : 256ll << 20;
    Findings all;
    if (facts.shared_memory >= 0 && facts.shared_memory < least)
        all.add(kWarn,
                "/dev/shm holds " + mebibytes(static_cast<double>(facts.shared_memory)) +
                    (several ? "; data loaders, and NCCL between several GPUs, need 1024 MiB"
                             : "; data loaders need more"),
                facts.in_container() ? "docker run --shm-size=8g … # or --ipc=host"
                                     : "sudo mount -o remount,size=8G /dev/shm");
    bool network = false;
    for (const NetworkCard &each : facts.machine.networks) network |= each.info.active == 1;
    if (network && facts.locked_memory >= 0 && facts.locked_memory < 1ll << 30)
        all.add(
            kWarn,
            "at most " + mebibytes(static_cast<double>(facts.locked_memory)) +
                " of memory may be locked; InfiniBand locks the memory that it sends",
            facts.in_container()
                ? "docker run --ulimit memlock=-1 …"
                : "ulimit -l unlimited # permanently: echo '* - memlock unlimited' | sudo tee /etc/security/limits.d/memlock.conf");
    if (facts.shared_memory < 0 && all.empty()) return skip("the size of /dev/shm is not known");
    return all.or_ok("/dev/shm holds " + mebibytes(static_cast<double>(facts.shared_memory)));
}

// Checks the limits of host memory. A limit of the address space or of data ends in an error, a limit of a control
// group in the end of the process.
Finding check_host_memory(const Facts &facts)
{
    const HostMemory &memory = facts.memory;
    const auto shown = [](long long bytes) { return mebibytes(static_cast<double>(bytes)); };
    Findings all;
    const long long left = memory.group - std::min(memory.group, memory.group_used);
    constexpr long long kLittle = 1ll << 30;
    if (memory.group >= 0 && (left < kLittle || left < memory.total / 10))
        all.add(
            kWarn,
            format(
                "the control group has %s of %s left, on a machine of %s: if a process takes more, the kernel kills it (%s)",
                shown(left).c_str(), shown(memory.group).c_str(), shown(memory.total).c_str(),
                memory.group_file.c_str()),
            facts.in_container()
                ? "docker run --memory=16g … # or resources.limits.memory of the pod"
                : "systemd-run --user --scope -p MemoryMax=infinity PROGRAM");
    if (memory.address_space >= 0)
        all.add(
            kWarn,
            "RLIMIT_AS is " + shown(memory.address_space) +
                "; CUDA reserves far more addresses than it uses memory, and fails under this limit",
            "ulimit -v unlimited");
    if (memory.data >= 0)
        all.add(kWarn,
                "RLIMIT_DATA is " + shown(memory.data) +
                    ", and all allocations count against this limit",
                "ulimit -d unlimited");
    if (memory.total < 0 && all.empty()) return skip("/proc/meminfo does not show the memory");
    if (memory.group >= 0)
        return all.or_ok(format("the control group grants %s, of which %s are used",
                                shown(memory.group).c_str(), shown(memory.group_used).c_str()));
    return all.or_ok("no limit, and " + shown(memory.available) + " of " + shown(memory.total) +
                     " are available");
}

// Checks the lease folder. A lease is a lock on a file. If a user removes the file, the next process gets the card,
// unseen by the holder.
static Finding check_lease_files(const LeaseFolder &leases)
{
    if (!leases.sticky)
        return found(
            kWarn,
            leases.path +
                " may be written by all and does not have the sticky bit: any user may remove another user's lease, and the GPU then has two holders",
            "sudo chmod 1777 " + leases.path);
    if (leases.path.rfind("/tmp/", 0) == 0 || leases.path.rfind("/var/tmp/", 0) == 0)
        return found(
            kWarn,
            leases.path +
                " is below a folder from which the system removes old files: if a lease is removed, its GPU may get a second holder",
            "echo 'd /run/lock/yoke 1777 root root -' | sudo tee /etc/tmpfiles.d/yoke.conf\n"
            "sudo systemd-tmpfiles --create yoke.conf" +
                std::string(leases.named ? "\nexport YOKE_LEASE_DIR=/run/lock/yoke" : ""));
    return ok(leases.path + " can be used");
}

Finding check_lease_folder(const Facts &facts)
{
    const LeaseFolder &leases = facts.leases;
    if (leases.named && leases.path[0] != '/')
        return found(
            kFail,
            "YOKE_LEASE_DIR is '" + leases.path +
                "', a relative path: processes in different folders would not see each other's leases",
            "export YOKE_LEASE_DIR=\"$(realpath -m " + leases.path + ")\"");
    if (!leases.exists && leases.named)
        return found(kFail, "YOKE_LEASE_DIR is '" + leases.path + "', which does not exist",
                     "sudo install -d -m 1777 " + leases.path);
    if (!leases.exists && (no_gpus(facts) || leases.path.rfind("/tmp/", 0) != 0))
        return ok(leases.path + " will be created when it is needed");
    if (!leases.exists) return check_lease_files(leases);
    if (!leases.writable)
        return found(kFail, leases.path + " may not be written by this user",
                     "sudo chmod 1777 " + leases.path);
    if (facts.in_container() && !leases.shared && !no_gpus(facts))
        return found(
            kWarn,
            leases.path +
                " is this container's own: other containers do not see leases that are held here",
            "docker run -v " + leases.path + ":" + leases.path + " …");
    return !no_gpus(facts) ? check_lease_files(leases) : ok(leases.path + " can be used");
}

}  // namespace yoke::doctor
