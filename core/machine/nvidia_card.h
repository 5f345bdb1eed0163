// nvidia_card.h: common parts of the files that ask NVIDIA's driver: how to tell its cards.
#pragma once

#include "core/machine/inventory.h"

#include <string_view>

namespace yoke {

inline constexpr const char *kNvidia = "nvidia";  // name of the vendor and of the kernel driver

inline bool is_nvidia(const yoke_card_info &info) noexcept
{
    return std::string_view(info.vendor) == kNvidia;
}

// Returns whether NVIDIA's kernel driver holds a card.
inline bool is_held_by_nvidia(const yoke_card_info &info) noexcept
{
    return std::string_view(info.driver) == kNvidia;
}
// Returns whether NVIDIA's kernel driver holds a card, or may hold a card whose driver is unknown or nvgpu. A
// Jetson's first driver was nvgpu; some releases let it hold the card on the PCI bus, too.
inline bool may_be_held_by_nvidia(const yoke_card_info &info) noexcept
{
    return !info.driver[0] || is_held_by_nvidia(info) || std::string_view(info.driver) == "nvgpu";
}

// Returns whether a card is a GPU within a processor that shows on no PCI bus: a Jetson's up to Orin.
inline bool is_off_bus(const yoke_card_info &info) noexcept
{
    return info.kind == YOKE_CARD_INTEGRATED && !info.pci[0];
}

// Marks a card missing on the bus as NVIDIA's, since the driver shows the card; by default, as held by the driver
// too.
inline void put_nvidia(yoke_card_info &info, bool is_held = true)
{
    put(info.vendor, kNvidia);
    if (is_held) put(info.driver, kNvidia);
}

}  // namespace yoke
