// candidates.h: the devices that could serve, put together from the inventory, the leases and what the backends opened.
//
// CUDA's devices and the inventory's cards are joined by UUID, else by PCI address, never by number. A device that no
// inventory knows (in a virtual machine, on a board without a management library) becomes a card from what its backend
// tells.
#pragma once

#include "core/device/device.h"
#include "core/select/choice.h"

#include <vector>

namespace yoke {

struct Candidates {
    Machine machine;
    Situation situation;
    std::vector<Device *> devices;  // of each card: as it was opened, or nullptr
};

// With `open`, every kind of device is opened first, unless it may not be used; raises if YOKE_PLATFORMS names one that
// cannot be. Without, only what is open already is joined. Leases are looked up where the spec asks for them, and then
// raise YOKE_E_IO if they cannot be; else as far as they can be.
Candidates find_candidates(const Spec &spec, bool open);

// By what a card's lease is known: its UUID, else its address.
std::string lease_key(const yoke_card_info &info);
std::string lease_key(const Device &device);

// The same for a name that a user gives: a UUID or its beginning, a PCI address, "cuda:0". Raises YOKE_E_VALUE for what
// names no card, or several.
std::string lease_key_of(std::string_view name);

// The doctor's check that looks into why no NVIDIA GPU can be used, "driver-bound"; "" where the machine shows none.
std::string doctor_check(const Machine &machine);

// Whether a GPU can be used, whatever a spec asks of it.
bool has_usable_gpu(const Candidates &all);

namespace detail {
// Puts a kind's opened devices into their cards' places, or behind the last card.
void join_devices(const std::vector<Device *> &devices, Candidates &all);
}  // namespace detail

}  // namespace yoke
