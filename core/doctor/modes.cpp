// Checks 21 to 24, 37 and 42: the modes of a GPU, the users of its memory, and the driver's permissions.
#include "core/base/error.h"
#include "core/doctor/checks.h"

#include <algorithm>

namespace yoke::doctor {

namespace {

// Returns the processes with memory of a card, the largest first, then the memory held by hidden processes.
std::string holders(const Card &card)
{
    std::vector<yoke_card_process> all = card.processes;
    std::stable_sort(all.begin(), all.end(),
                     [](const auto &a, const auto &b) { return a.memory_used > b.memory_used; });
    std::string text;
    for (const yoke_card_process &process : all)
        if (process.visible == 1)
            text += format(", process %d (%s%s%s) has %s", process.pid, process.name,
                           process.user[0] ? ", " : "", process.user,
                           process.memory_used < 0
                               ? "an unknown part"
                               : mebibytes(static_cast<double>(process.memory_used)).c_str());
    if (card.info.hidden_memory <= 0) return text;
    const std::string part = mebibytes(static_cast<double>(card.info.hidden_memory));
    const int hidden = card.info.hidden_processes;
    if (hidden <= 0) return text + ", processes that cannot be seen have " + part;
    return text + format(", %d hidden process%s %s %s", hidden, hidden == 1 ? "" : "es",
                         hidden == 1 ? "has" : "have", part.c_str());
}

std::string stop_command(const Card &card)
{
    std::string pids;
    for (const yoke_card_process &process : card.processes)
        if (process.visible == 1) pids += format(" %d", process.pid);
    if (!pids.empty()) return "ps -o user,pid,etime,cmd" + pids + " # then: kill PID";
    return format(
        "on the host: nvidia-smi -i %s --query-compute-apps=pid,name,used_memory --format=csv",
        card.info.pci);
}

}  // namespace

Finding check_compute_mode(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const bool shut = info.compute_mode == YOKE_COMPUTE_PROHIBITED;
        // With a Multi-Process Service, exclusive is the right mode.
        if (!shut && (info.compute_mode != YOKE_COMPUTE_EXCLUSIVE || info.mps == 1)) continue;
        all.add(shut ? kFail : kWarn,
                label(facts, i) + (shut ? " lets no process compute (prohibited)"
                                        : " lets one process compute (exclusive)"),
                format("sudo nvidia-smi -i %s -c 0", info.pci), i);
    }
    return all.or_ok("the compute mode is default");
}

Finding check_mig_instances(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    bool partitioned = false;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        partitioned |= info.mig == 1;
        if (info.mig == 1 && info.mig_instances <= 0)
            all.add(kFail, label(facts, i) + " is partitioned (MIG), but has no instance",
                    format("sudo nvidia-smi mig -i %s -cgi 0 -C # one instance of the whole GPU\n"
                           "or, to switch MIG off: sudo nvidia-smi -i %s -mig 0",
                           info.pci, info.pci),
                    i);
    }
    return all.or_ok(partitioned ? "every partitioned GPU has instances" : "no GPU is partitioned");
}

Finding check_free_memory(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts)) {
        const Card &each = facts.machine.card(i);
        const double total = static_cast<double>(each.info.memory_total);
        const double available = static_cast<double>(each.info.memory_free);
        if (total <= 0 || available < 0 || available >= 0.1 * total) continue;
        all.add(kWarn,
                label(facts, i) + " has " + mebibytes(available) + " free of " + mebibytes(total) +
                    holders(each),
                stop_command(each), i);
    }
    return all.or_ok("every GPU has a tenth of its memory or more free");
}

Finding check_persistence(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts))
        if (card(facts, i).persistence == 0)
            all.add(
                kWarn,
                label(facts, i) +
                    " is initialized again whenever a program finds it unused, which takes seconds",
                facts.in_container()
                    ? "on the host: sudo systemctl enable --now nvidia-persistenced"
                    : "sudo systemctl enable --now nvidia-persistenced",
                i);
    return all.or_ok("persistence mode is on, or the driver does not report it");
}

Finding check_profiler(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    const auto only = facts.driver_parameters.find("RmProfilingAdminOnly");
    if (only == facts.driver_parameters.end())
        return skip("/proc/driver/nvidia/params does not show who may profile");
    if (only->second != "1") return ok("every user may profile");
    if (facts.administrator)
        return ok("only administrators may profile, and this user is an administrator");
    return found(
        kWarn,
        "RmProfilingAdminOnly is 1, and this process is not an administrator's: profilers fail with ERR_NVGPUCTRPERM",
        "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee /etc/modprobe.d/nvidia-profiling.conf\n" +
            rebuild_initramfs(facts) + "\nsudo reboot");
}

Finding check_vgpu_licence(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    bool any = false;
    for (const int i : working_gpus(facts)) {
        any |= card(facts, i).vgpu == 1;
        if (card(facts, i).vgpu == 1 && card(facts, i).vgpu_licensed == 0)
            all.add(
                kFail,
                label(facts, i) +
                    " is virtual and has no licence: it slows down after some minutes, and CUDA is refused",
                "sudo cp client_configuration_token_*.tok /etc/nvidia/ClientConfigToken/\n"
                "sudo systemctl restart nvidia-gridd\nnvidia-smi -q | grep -A2 'License Status'",
                i);
    }
    return any ? all.or_ok("licensed, or the driver does not report it")
               : skip("no GPU is virtual");
}

}  // namespace yoke::doctor
