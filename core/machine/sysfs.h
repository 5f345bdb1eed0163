// sysfs.h: the PCI bus as the kernel shows it: the cards, their drivers and their bridges.
//
// Reading these files wakes no card: if runtime power management has suspended a card, its link is not read.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <string>
#include <vector>

namespace yoke {

// Returns every graphics card and accelerator on the bus, by PCI address. `only` limits the list to a single address.
std::vector<Card> read_pci_cards(const Root &root, const std::string &only = "");

// Returns the bridges above a device, from the device's own port up to the root port, by the link's target in
// /sys/bus/pci/devices.
std::vector<std::string> bridges_of(const std::string &link, const std::string &address);

// Returns a PCI address as "0000:65:00.0", from any spelling (NVML gives eight digits for the domain); "" for no
// address.
std::string pci_address(std::string_view text);

// Returns the docks not authorized by the system.
std::vector<UnauthorizedDock> unauthorized_docks(const Root &root);

// Marks cards behind Thunderbolt, USB4 or a removable slot, with the names of the enclosures.
void read_enclosures(const Root &root, std::vector<Card> &cards);

// Returns the PCI Express generation with the speed "16.0 GT/s PCIe"; -1 for none.
int32_t pcie_generation(std::string_view speed);

// Returns a vendor's name as the header writes it, "nvidia" for 0x10de; four hex digits for an unknown vendor.
std::string vendor_name(int64_t id);

}  // namespace yoke
