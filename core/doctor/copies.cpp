// Checks 27, 28 and 38: what a probe measured of copies between host and GPUs, of copies between GPUs, and of a kernel.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"
#include "core/machine/topology.h"

#include <cmath>

namespace yoke::doctor {

namespace {

constexpr double kShareOfLink = 0.7;
constexpr double kPcieShareOfCable = 22.0 / 40.0;

std::optional<std::string> why_no_probes(const Facts &facts)
{
    if (auto none = no_working_gpus(facts)) return none;
    if (!facts.probes.empty()) return std::nullopt;
    return facts.no_probes;
}

// Returns the upper bound of copies in bytes per second: of the card's link, and of the cable of an external GPU.
double ceiling_of(const yoke_card_info &info)
{
    const double link = pcie_rate(info.link_generation_max, info.link_width_max);
    if (info.is_egpu != 1) return link;
    const double cable =
        (info.enclosure_rate > 0 ? info.enclosure_rate : 40e9) * kPcieShareOfCable / 8;
    return link > 0 ? std::min(link, cable) : cable;
}

std::string without_iommu(const Facts &facts)
{
    return pass_through(facts) +
           "\nsudo lspci -vvv | grep ACSCtl # SrcValid+ on a switch: disable ACS in the BIOS\nsudo reboot\nuntil then: export NCCL_P2P_DISABLE=1 YOKE_NO_PEER_ACCESS=1";
}

void check_pair(const Facts &facts, int a, int b, double rate, Findings &all)
{
    const yoke_card_link &link = facts.machine.link(a, b);
    const std::string pair = label(facts, a) + " to " + label(facts, b);
    if (rate <= 0) {
        all.add(kFail,
                pair + (link.peer == 1 ? ": the driver claims peer copies, but wrong bytes arrive"
                                       : ": wrong bytes arrive"),
                without_iommu(facts), a);
        return;
    }
    if (link.peer == 0) return;  // copies between these go through the host, as the driver says
    const double link_best =
        pcie_rate(card(facts, b).link_generation_max, card(facts, b).link_width_max);
    if (link.nvlinks <= 0 && link_best > 0 && rate < 0.3 * link_best)
        all.add(
            kWarn,
            pair + " copies " + gigabytes_a_second(rate) + ", but the link can reach " +
                gigabytes_a_second(link_best) +
                (is_translated(facts, card(facts, a).pci) ? "; an IOMMU translates its addresses"
                                                          : ""),
            without_iommu(facts), a);
}

}  // namespace

Finding check_copy_rate(const Facts &facts)
{
    if (const auto none = why_no_probes(facts)) return skip(*none);
    Findings all;
    std::string rates;
    for (const auto &[i, probe] : facts.probes) {
        const yoke_card_info &info = card(facts, i);
        const double best = ceiling_of(info);
        if (best <= 0 || std::isnan(probe.host_to_device)) continue;
        add_part(rates,
                 label(facts, i) + ": " + gigabytes_a_second(probe.host_to_device) + " to it, " +
                     gigabytes_a_second(probe.device_to_host) + " from it",
                 "; ");
        const bool slow = probe.host_to_device < kShareOfLink * best ||
                          probe.device_to_host < kShareOfLink * best;
        if (slow)
            all.add(kWarn,
                    label(facts, i) + ": " + gigabytes_a_second(probe.host_to_device) +
                        " to it and " + gigabytes_a_second(probe.device_to_host) +
                        " from it, but its link can reach " + gigabytes_a_second(best),
                    info.numa_node >= 0
                        ? format("numactl --cpunodebind=%d --membind=%d PROGRAM", info.numa_node,
                                 info.numa_node)
                        : "nvidia-smi topo -m # then bind to its CPUs: taskset -c CPUS PROGRAM",
                    i);
    }
    if (rates.empty()) return skip("no probe measured a copy over a link of known rate");
    return all.or_ok(rates);
}

Finding check_peer_copies(const Facts &facts)
{
    if (const auto none = why_no_probes(facts)) return skip(*none);
    Findings all;
    int pairs = 0;
    for (const auto &[a, probe] : facts.probes)
        for (const auto &[b, rate] : probe.peers) {
            if (std::isnan(rate)) continue;
            ++pairs;
            check_pair(facts, a, b, rate, all);
        }
    std::string missed;
    for (const auto &[a, probe] : facts.probes)
        if (!probe.unmeasured.empty()) missed = label(facts, a) + ": " + probe.unmeasured;
    if (pairs)
        return all.or_ok(format("%d pairs of GPUs copy correctly and fast", pairs) +
                         (missed.empty() ? "" : "; some pairs were not measured: " + missed));
    return skip(missed.empty() ? "there is no pair of GPUs to copy between"
                               : "no pair was measured: " + missed);
}

Finding check_smoke(const Facts &facts)
{
    if (const auto none = why_no_probes(facts)) return skip(*none);
    Findings all;
    int tried = 0;
    for (const auto &[i, probe] : facts.probes) {
        const char *pci = card(facts, i).pci;
        const std::string wrong = probe.smoke == "ok" ? "" : probe.smoke;
        tried += probe.smoke == "ok";
        // A reset takes the card away from all users, so only a fault possibly caused by the card itself calls for a
        // reset.
        for (const std::string &fault : {wrong, probe.broken})
            if (!fault.empty())
                all.add(kFail, label(facts, i) + ": " + fault,
                        format("sudo nvidia-smi -i %s --gpu-reset # no process may use it\n"
                               "dcgmi diag -r 3 # if it fails again: the card is broken",
                               pci),
                        i);
        if (!probe.failed.empty())
            all.add(kFail, label(facts, i) + ": " + probe.failed,
                    "sudo dmesg | grep -e NVRM -e nvidia # messages of the driver", i);
        if (!probe.untried.empty())
            all.add(
                kWarn, label(facts, i) + " could not be tried: " + probe.untried,
                format("nvidia-smi -i %s # lists its processes; then: yoke doctor --probe", pci),
                i);
    }
    if (!tried && all.empty()) return skip("no kernel was tried");
    return all.or_ok(format("kernels ran on %d GPUs and their results are correct", tried));
}

}  // namespace yoke::doctor
