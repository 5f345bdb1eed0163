#include "core/device/sample.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/machine/files.h"
#include "core/machine/proc.h"
#include "core/machine/snapshot.h"
#include "core/machine/sysfs.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace yoke {

namespace {

// ---- The CPU --------------------------------------------------------------------------------------------------------

struct Ticks {
    uint64_t busy = 0, all = 0;
};
struct LastTicks {
    Mutex mutex{LockRank::kOther};
    Ticks ticks;
};
LastTicks &last_ticks = immortal<LastTicks>();

Ticks read_ticks(const std::string &stat)
{
    // user nice system idle iowait irq softirq steal
    unsigned long long part[8] = {};
    sscanf(stat.c_str(), "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &part[0], &part[1],
           &part[2], &part[3], &part[4], &part[5], &part[6], &part[7]);
    Ticks ticks;
    for (int i = 0; i < 8; ++i) {
        ticks.all += part[i];
        if (i != 3 && i != 4) ticks.busy += part[i];
    }
    return ticks;
}

// Returns the share of all processors' time spent on work since the last call. Returns NaN at the first call, and if
// the counters have not advanced.
double take_utilization(const std::string &stat)
{
    const Ticks now = read_ticks(stat);
    const std::lock_guard lock(last_ticks.mutex);
    const Ticks before = last_ticks.ticks;
    last_ticks.ticks = now;
    if (before.all == 0 || now.all <= before.all || now.busy < before.busy) return NAN;
    return static_cast<double>(now.busy - before.busy) / static_cast<double>(now.all - before.all);
}

Card sample_cpu()
{
    const Root root = configured_root();
    Card card = unknown_card();
    yoke_card_info &info = card.info;
    const std::string processor = root.text("/proc/cpuinfo");
    const std::string maker = field_of(processor, "vendor_id");
    std::string name = field_of(processor, "model name");
    if (name.empty()) name = root.text("/proc/device-tree/model", 256);
    put(info.name, name);
    put(info.vendor, maker == "GenuineIntel" ? "intel" : maker == "AuthenticAMD" ? "amd" : maker);
    info.present = 1;
    info.is_egpu = 0;
    put_host_memory(root, info);
    info.utilization = take_utilization(root.text("/proc/stat", 512));
    // "0-1" is two nodes: the processors have no one node then.
    const std::string nodes = root.text("/sys/devices/system/node/online", 64);
    if (nodes.find_first_not_of("0123456789") == std::string::npos && !nodes.empty())
        info.numa_node = atoi(nodes.c_str());
    return card;
}

// ---- Cards ----------------------------------------------------------------------------------------------------------

// Returns the card with this UUID, else the card with this PCI address, else nullptr. The UUID comes first: an
// instance of a partitioned card has the address of the whole card.
const Card *find_card(const Machine &machine, const std::string &uuid, const std::string &address)
{
    for (const Card &card : machine.cards)
        if (!uuid.empty() && is_same_uuid(uuid, card.info.uuid)) return &card;
    for (const Card &card : machine.cards)
        if (!address.empty() && address == card.info.pci && card.info.kind != YOKE_CARD_MIG)
            return &card;
    return nullptr;
}

[[noreturn]] void fail_lost(const Device &device, const std::string &why)
{
    throw Error(YOKE_E_DEVICE_LOST,
                format("%s (%s) is gone: %s", device.name.c_str(), device.info.name, why.c_str()),
                0, device.name);
}

}  // namespace

Card sample_device(const Device &device)
{
    if (device.host) return sample_cpu();
    const std::string uuid = device.info.uuid, address = pci_address(device.info.pci);
    if (uuid.empty() && address.empty())
        fail(
            YOKE_E_UNAVAILABLE,
            "%s has neither a UUID nor a PCI address, so its state cannot be read; give 'cpu' or a card",
            device.name.c_str());
    Machine machine = address.empty() ? take_inventory() : look_at_card(address);
    const Card *card = find_card(machine, uuid, address);
    if (!card && !address.empty()) {
        // NVML may know cards on no visible bus.
        machine = take_inventory();
        card = find_card(machine, uuid, address);
    }
    const NvmlFailure &failure = machine.nvml.failure;
    if (!card && !failure)
        fail_lost(device,
                  "neither the PCI bus nor the driver shows " + (uuid.empty() ? address : uuid) +
                      " any more; check power and cable, and end the programs that use the device");
    if (!card)
        fail(YOKE_E_UNAVAILABLE, "the state of %s (%s) cannot be read: %s", device.name.c_str(),
             uuid.empty() ? address.c_str() : uuid.c_str(), nvml_failure_text(machine).c_str());
    if (card->info.present == 0) fail_lost(device, card->info.reason);
    return *card;
}

}  // namespace yoke
