// nvidia.h: what the files that ask NVIDIA's driver share: which cards are its own.
#pragma once

#include "core/machine/inventory.h"

namespace yoke {

bool is_nvidia(const yoke_card_info &info) noexcept;

// Whether NVIDIA's kernel driver holds a card; whether it may, where nobody tells who holds it.
bool is_held_by_nvidia(const yoke_card_info &info) noexcept;
bool may_be_held_by_nvidia(const yoke_card_info &info) noexcept;

// A card that shows on no bus, but in NVIDIA's driver.
void put_nvidia(yoke_card_info &info, bool is_held = true);

}  // namespace yoke
