// catalog.h: the models of cards that are known, with the figures of their data sheets.
#pragma once

#include "yoke/inventory.h"

#include <span>
#include <string_view>

namespace yoke {

std::span<const yoke_catalog_card> catalog();

// The model that a driver's name and total memory belong to, as an index; -1: none. The name must end in the model's,
// so that a "Ti" or "Laptop GPU" is not taken for the plain card; memory, where both know it, must be within 6 %.
int find_model(std::string_view name, int64_t memory);

// The memory of a card in all: as it was told, else its model's; -1 where neither is known. So who opens a card and who
// only looks at it order cards alike where there is no management library.
int64_t known_memory(const yoke_card_info &info);

}  // namespace yoke
