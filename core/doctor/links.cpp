// Checks 25, 26, 29, 39 to 41, 43 and 47: what joins GPUs to the machine, to each other and to the network.
#include "core/base/error.h"
#include "core/doctor/checks.h"
#include "core/machine/catalog.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace yoke::doctor {

namespace {

// Share of Thunderbolt 3's 40 Gbit/s left for PCI Express data: about 22.
constexpr double kPcieShare = 22.0 / 40.0;

// Docks with a maker's statement of the board's power.
constexpr struct {
    const char *name;
    double watts;
} kDocks[] = {
#define YOKE_DOCK(name, watts, source) {name, watts},
#include "core/doctor/docks.def"
#undef YOKE_DOCK
};

bool is_on_baseboard(const yoke_card_info &info)
{
    const int model = find_model(info.name, info.memory_total);
    return model >= 0 && strstr(catalog()[static_cast<size_t>(model)].name, "SXM");
}

double dock_budget(const std::string &name)
{
    for (const auto &dock : kDocks)
        if (name.find(dock.name) != name.npos) return dock.watts;
    return 0;
}

}  // namespace

std::string authorize(const Dock &dock)
{
    return dock.uuid.empty()
               ? "boltctl list # names the dock's UUID\nboltctl enroll --policy auto UUID"
               : "boltctl enroll --policy auto " + dock.uuid;
}

Finding check_link_width(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        if (info.is_egpu == 1) continue;  // a cable's width is for check 26
        // In a laptop, the maker fixes the width of the link. In Linux within Windows, the bus is virtual.
        const bool is_wired = facts.is_laptop || is_wsl(facts);
        const bool narrow =
            !is_wired && info.link_width > 0 && info.link_width < info.link_width_max;
        // An idle link slows down to save power.
        const bool slow = info.link_generation > 0 &&
                          info.link_generation < info.link_generation_max &&
                          info.utilization >= 0.05;
        if (!narrow && !slow) continue;
        all.add(
            kWarn,
            format("%s runs at generation %d x%d, but supports generation %d x%d%s",
                   label(facts, i).c_str(), info.link_generation, info.link_width,
                   info.link_generation_max, info.link_width_max,
                   info.link_replays > 0
                       ? format(", with %lld replays", static_cast<long long>(info.link_replays))
                             .c_str()
                       : ""),
            format(
                "sudo lspci -s %s -vv | grep -e LnkCap -e LnkSta\n"
                "%s",
                info.pci,
                facts.is_laptop || is_wsl(facts)
                    ? "update the BIOS, and plug the charger in: some laptops slow the link to save power"
                    : "power off, reseat the card, try another slot or riser cable; in the BIOS set the slot to its full width"),
            i);
    }
    return all.or_ok("every link runs at its full width");
}

Finding check_external_gpu(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        if (info.is_egpu != 1) continue;
        const double rate = info.enclosure_rate > 0 ? info.enclosure_rate : 40e9;
        all.add(
            kWarn,
            format("%s is behind %s at %.0f Gbit/s, and copies reach at most %s",
                   label(facts, i).c_str(), info.enclosure[0] ? info.enclosure : "a cable",
                   rate / 1e9, gigabytes_a_second(rate * kPcieShare / 8).c_str()),
            "keep data on the GPU: batch transfers, pin host memory (x.pin_memory()), copy with non_blocking=True",
            i);
    }
    return all.or_ok("no GPU is behind a cable");
}

Finding check_nvlink(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    int links = 0, partitioned = 0;
    const bool fault = facts.log.value_or("").find("): 74,") != std::string::npos;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        if (info.nvlinks <= 0) continue;
        // The driver takes the links of a partitioned card down, and a MIG instance uses none.
        if (info.mig == 1) {
            ++partitioned;
            continue;
        }
        links += std::max(0, info.nvlinks_active);
        // Cards with bridges may have some or no links up; cards of a baseboard must have all links up.
        if (info.nvlinks_active < 0 || info.nvlinks_active >= info.nvlinks ||
            !(fault || is_on_baseboard(info)))
            continue;
        all.add(
            kFail,
            format("%s has %d of %d NVLinks up%s", label(facts, i).c_str(), info.nvlinks_active,
                   info.nvlinks, fault ? ", and the kernel log has Xid 74" : ""),
            format(
                "nvidia-smi nvlink -s -i %s\nsudo systemctl restart nvidia-fabricmanager\n"
                "sudo nvidia-smi -i %s --gpu-reset # if links stay down: check the bridge or baseboard",
                info.pci, info.pci),
            i);
    }
    return links || !all.empty()
               ? all.or_ok(format("%d NVLinks are up, and none is missing", links))
               : skip(partitioned ? "MIG is on, and its instances use no NVLink"
                                  : "no GPU has an NVLink in use");
}

Finding check_dock_power(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    Findings all;
    bool any = false;
    for (const int i : working_gpus(facts)) {
        const yoke_card_info &info = card(facts, i);
        const double budget = info.is_egpu == 1 ? dock_budget(info.enclosure) : 0;
        any |= budget > 0 && !std::isnan(info.power_limit);
        if (budget > 0 && info.power_limit > budget)
            all.add(kFail,
                    format("%s may draw %.0f W, but %s supplies a board of %.0f W",
                           label(facts, i).c_str(), info.power_limit, info.enclosure, budget),
                    format("sudo nvidia-smi -i %s -pl %.0f", info.pci, budget), i);
    }
    return any ? all.or_ok("every board is within its dock's budget")
               : skip("no GPU in a dock whose budget is known");
}

Finding check_thunderbolt_security(const Facts &facts)
{
    if (facts.docks.empty()) return skip("no Thunderbolt device is attached");
    Findings all;
    for (const Dock &dock : facts.docks) {
        const bool no_tunnels =
            dock.security == "dponly" || dock.security == "usbonly" || dock.security == "nopcie";
        if (no_tunnels)
            all.add(kFail,
                    dock.name + ": the security level '" + dock.security +
                        "' of the firmware forbids PCI Express to any dock",
                    "in the BIOS, set Thunderbolt security to \"User Authorization\"");
        else if (dock.authorized == "0")
            all.add(kFail,
                    dock.name + " is not authorized; the security level is '" + dock.security + "'",
                    authorize(dock));
    }
    return all.or_ok(facts.docks[0].name + " is authorized");
}

Finding check_thunderbolt_firmware(const Facts &facts)
{
    if (facts.docks.empty()) return skip("no Thunderbolt device is attached");
    Findings all;
    const std::string update =
        "sudo fwupdmgr refresh && sudo fwupdmgr get-updates\n"
        "sudo fwupdmgr update";
    for (const Dock &dock : facts.docks) {
        const bool failed =
            !dock.update_status.empty() && dock.update_status != "0x0" && dock.update_status != "0";
        if (dock.safe_mode)
            all.add(kFail, dock.name + " is in safe mode: its firmware is damaged", update);
        else if (failed)
            all.add(kWarn,
                    dock.name + " runs firmware " + dock.firmware +
                        "; its last update failed with " + dock.update_status,
                    update);
    }
    return all.or_ok(
        facts.docks[0].name + " runs firmware " +
        (facts.docks[0].firmware.empty() ? "of an unknown version" : facts.docks[0].firmware));
}

Finding check_thunderbolt_cable(const Facts &facts)
{
    if (facts.docks.empty()) return skip("no Thunderbolt device is attached");
    Findings all;
    std::string rates;
    for (const Dock &dock : facts.docks) {
        if (dock.speed <= 0) continue;
        const int width = dock.width > 0 ? dock.width : 1;
        rates = format("%s: %d lanes of %.0f Gbit/s", dock.name.c_str(), width, dock.speed);
        // Thunderbolt 3 and USB4 are 20 Gbit/s in each of two.
        if (dock.generation >= 3 && (dock.speed < 20 || width < 2))
            all.add(
                kWarn, rates + "; the dock supports 2 lanes of 20",
                "use a certified 40 Gbit/s cable: a passive cable up to 0.8 m, an active cable if longer");
    }
    return rates.empty() ? skip("the kernel does not report the cable's rate") : all.or_ok(rates);
}

Finding check_peer_memory(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    const std::string port = active_port(facts);
    if (port.empty()) return skip("no InfiniBand or RoCE port is up");
    const std::vector<int> cards = working_gpus(facts);
    if (std::all_of(cards.begin(), cards.end(), [&](int i) { return is_consumer(facts, i); }))
        return skip("a network cannot reach the memory of " + label(facts, cards[0]) +
                    ": GeForce and TITAN have no GPUDirect RDMA");
    if (facts.modules.count("nvidia_peermem") || facts.modules.count("nv_peer_mem"))
        return ok("nvidia_peermem is loaded");
    // The open module with a kernel from 5.12 on uses dma-buf instead.
    if (facts.machine.driver_flavor == DriverFlavor::kOpen &&
        compare_versions(facts.kernel, "5.12") >= 0)
        return ok("the open driver gives GPU memory to " + port + " over dma-buf");
    if (facts.in_container())
        return found(kWarn, port + " is up, but the host has not loaded nvidia_peermem",
                     "on the host: sudo modprobe nvidia_peermem");
    return found(
        kWarn,
        port + " is up, but nvidia_peermem is not loaded: each message goes through host memory",
        "sudo modprobe nvidia_peermem\n"
        "echo nvidia_peermem | sudo tee /etc/modules-load.d/nvidia_peermem.conf");
}

}  // namespace yoke::doctor
