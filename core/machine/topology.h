// topology.h: how cards, and cards and networks, are joined, as far as the PCI bus tells.
#pragma once

#include "core/machine/inventory.h"

namespace yoke {

// Fills machine.links from bridges and NUMA nodes.
void link_by_bus(Machine &machine);

// Returns the path between two devices (YOKE_PATH_*) by bridges, addresses and nodes.
int32_t path_between(const std::vector<std::string> &bridges_a, const std::string &a,
                     int32_t node_a, const std::vector<std::string> &bridges_b,
                     const std::string &b, int32_t node_b);

// Returns the label of a path: "PIX" for YOKE_PATH_SWITCH.
const char *path_label(int32_t path);

// Writes the label from the other fields of a link.
void label_link(yoke_card_link &link);

// Returns the bytes per second, in one direction, of a PCI Express link; 0 if generation or width is unknown. A
// generation newer than pcie.def counts as its last generation.
double pcie_rate(int generation, int width);

// Returns the matrix in the form of `nvidia-smi topo -m`.
std::string topology_text(const Machine &machine);

}  // namespace yoke
