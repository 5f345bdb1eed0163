// nvidia_card.h: what the files that ask NVIDIA's driver share: which cards are its own.
#pragma once

#include "core/machine/inventory.h"

#include <string_view>

namespace yoke {

inline constexpr const char *kNvidia = "nvidia";  // the vendor, and its kernel driver

inline bool is_nvidia(const yoke_card_info &info) noexcept
{
    return std::string_view(info.vendor) == kNvidia;
}

// Whether NVIDIA's kernel driver holds a card; whether it may, where nobody tells who holds it.
inline bool is_held_by_nvidia(const yoke_card_info &info) noexcept
{
    return std::string_view(info.driver) == kNvidia;
}
// A Jetson's first driver was nvgpu; some releases let it hold the card on the PCI bus, too.
inline bool may_be_held_by_nvidia(const yoke_card_info &info) noexcept
{
    return !info.driver[0] || is_held_by_nvidia(info) || std::string_view(info.driver) == "nvgpu";
}

// Whether a card is a GPU within a processor that shows on no PCI bus: a Jetson's up to Orin.
inline bool is_off_bus(const yoke_card_info &info) noexcept
{
    return info.kind == YOKE_CARD_INTEGRATED && !info.pci[0];
}

// A card that shows on no bus, but in NVIDIA's driver.
inline void put_nvidia(yoke_card_info &info, bool is_held = true)
{
    put(info.vendor, kNvidia);
    if (is_held) put(info.driver, kNvidia);
}

}  // namespace yoke
