// catalog.h: the known models of cards, with figures of their data sheets.
#pragma once

#include "yoke/inventory.h"

#include <span>
#include <string_view>

namespace yoke {

std::span<const yoke_catalog_card> catalog();

// Returns the index of the model with this driver name and total memory; -1: none. The name must end in the model's
// name, so a "Ti" or "Laptop GPU" is not taken for the plain card. If both memory sizes are known, they must be
// within 6 %.
int find_model(std::string_view name, int64_t memory);

// Returns a card's total memory: the reported size, else the model's; -1 if both are unknown. So without a management
// library, a process that opens the cards and a process that only looks order the cards alike.
int64_t known_memory(const yoke_card_info &info);

}  // namespace yoke
