// nvidia_module.h: what NVIDIA's kernel modules tell in files: the driver, cards that the bus does not show, Jetsons.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

namespace yoke {

// Of the loaded kernel module: its version and flavor.
void read_driver(const Root &root, Machine &machine);

// What the kernel module keeps of a card that NVML did not tell of: name, UUID, minor number. Wakes no card.
void read_module_card(const Root &root, Card &card);

// Cards that the module knows and the PCI bus no longer shows.
void add_vanished_cards(const Root &root, Machine &machine);

// Marks a card on the PCI bus that is a GPU within a processor, by its device number.
void mark_integrated(yoke_card_info &info);

// Gives a GPU within a processor what it shares: the host's memory, and no link. Other cards stay as they are.
void settle_integrated(const Root &root, yoke_card_info &info);

// Adds a Jetson's GPU, unless the PCI bus shows it: it does from Thor on.
void add_integrated_card(const Root &root, Machine &machine);

}  // namespace yoke
