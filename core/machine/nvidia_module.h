// nvidia_module.h: facts from the files of NVIDIA's kernel modules: the driver, cards missing on the bus, Jetsons.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

namespace yoke {

// Reads version and flavor of the loaded kernel module.
void read_driver(const Root &root, Machine &machine);

// Reads the kernel module's facts about a card without facts from NVML: name, UUID, minor number. Wakes no card.
void read_module_card(const Root &root, Card &card);

// Adds cards known to the module, but no longer on the PCI bus.
void add_vanished_cards(const Root &root, Machine &machine);

// Marks a card on the PCI bus as a GPU within a processor, by the device number.
void mark_integrated(yoke_card_info &info);

// Gives a GPU within a processor the host's memory, and no link. Other cards stay as they are.
void settle_integrated(const Root &root, yoke_card_info &info);

// Adds a Jetson's GPU if the PCI bus does not show it. From Thor on, the bus shows the GPU.
void add_integrated_card(const Root &root, Machine &machine);

}  // namespace yoke
