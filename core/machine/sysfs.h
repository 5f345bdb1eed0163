// sysfs.h: the PCI bus as the kernel shows it: which cards there are, who drives them, what they hang from.
//
// Reading these files wakes no card: where runtime power management has suspended one, its link is not asked for.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>
#include <vector>

namespace yoke {

// Every graphics card and accelerator of the bus, by PCI address. `only` limits that to one address.
std::vector<Card> read_pci_cards(const Root &root, const std::string &only = "");

// The bridges above a device, from its own port up to the root port, by the target of its link in /sys/bus/pci/devices.
std::vector<std::string> bridges_of(const std::string &link, const std::string &address);

// "0000:65:00.0", from any way in which an address is written (NVML gives eight digits for the domain); "" for no
// address.
std::string pci_address(std::string_view text);

// Docks that the system has not let in.
std::vector<UnauthorizedDock> unauthorized_docks(const Root &root);

// Marks cards behind Thunderbolt, USB4 or a removable slot, and names their enclosures.
void read_enclosures(const Root &root, std::vector<Card> &cards);

// The generation of PCI Express that runs at "16.0 GT/s PCIe"; -1 for none.
int32_t pcie_generation(std::string_view speed);

// "10de" as the header writes a vendor.
std::string vendor_name(int64_t id);

}  // namespace yoke
