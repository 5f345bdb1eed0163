// candidates.h: the devices that could serve, made from the inventory, the leases and the opened devices of the
// backends.
//
// CUDA's devices and the inventory's cards are joined by UUID, else by PCI address, never by number. A device may be
// missing in the inventory (in a virtual machine, on a board without a management library). Such a device becomes a
// card with the backend's facts.
#pragma once

#include "core/device/device.h"
#include "core/select/choice.h"

#include <vector>

namespace yoke {

struct Candidates {
    Machine machine;
    Situation situation;
    std::vector<Device *> devices;  // opened device of each card, or nullptr
};

// Returns the candidates. With `open`, opens every usable kind first, and raises if YOKE_PLATFORMS names a kind that
// cannot be used. Without `open`, joins only open devices. If the spec asks for leases, raises YOKE_E_IO if they
// cannot be looked up; else looks them up as far as possible.
Candidates find_candidates(const Spec &spec, bool open);

// Returns the name of a card's lease: the UUID, else the address.
std::string lease_key(const yoke_card_info &info);
std::string lease_key(const Device &device);

// Returns the lease's name for a user's name of a card: a UUID or its beginning, a PCI address, "cuda:0". Raises
// YOKE_E_VALUE if the name fits no card, or several.
std::string lease_key_of(std::string_view name);

// Returns the doctor's check about unusable NVIDIA GPUs, "driver-bound"; "" if the machine shows no GPU.
std::string doctor_check(const Machine &machine);

// Returns whether a GPU can be used, whatever the spec.
bool has_usable_gpu(const Candidates &all);

namespace detail {
// Puts a kind's opened devices into the places of the cards, or after the last card.
void join_devices(const std::vector<Device *> &devices, Candidates &all);
}  // namespace detail

}  // namespace yoke
