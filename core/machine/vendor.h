// vendor.h: a maker of cards: the facts from its driver and its files beyond the PCI bus, with a file for each
// vendor.
//
// A snapshot asks every vendor, in the order of the functions here. Facts not reported by a vendor stay unknown.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <array>
#include <string_view>

namespace yoke {

class Vendor {
public:
    // Takes the number on the PCI bus, the name as in yoke_card_info::vendor, and the spelling for people.
    constexpr Vendor(int64_t id, const char *name, const char *brand)
        : id_(id), name_(name), brand_(brand)
    {
    }

    int64_t id() const noexcept { return id_; }
    const char *name() const noexcept { return name_; }
    const char *brand() const noexcept { return brand_; }

    // Reads the facts of the loaded kernel module, such as its version.
    virtual void read_driver(const Root &, Machine &) const {}
    // Fill in a card of the vendor on the bus: by its address alone, then, unless the card sleeps, from its folder.
    virtual void place_card(yoke_card_info &) const {}
    virtual void read_card(const Folder &, yoke_card_info &) const {}
    // Add cards lost by the bus, then cards that are on no bus.
    virtual void add_vanished_cards(const Root &, Machine &) const {}
    virtual void add_integrated_cards(const Root &, Machine &) const {}
    // Asks the management library; without `links`, only about cards already in the list.
    virtual void ask_driver(const Root &, Machine &, bool /*links*/) const {}
    // Adds facts missing in the library's answers, and marks this process's cards.
    virtual void complete_cards(const Root &, Machine &) const {}
    // Sets why the vendor's cards cannot be used: by default because no backend serves them.
    virtual void reject_cards(const Root &, Machine &) const;
    // Sets the runtime's numbers of the cards.
    virtual void number_devices(Machine &) const {}
    // Returns whether the vendor's own kernel driver holds a card.
    virtual bool holds(const yoke_card_info &) const { return false; }

protected:
    ~Vendor() = default;  // all live as long as the library
    bool is_ours(const Card &card) const { return std::string_view(card.info.vendor) == name_; }

private:
    int64_t id_;
    const char *name_, *brand_;
};

// Return a vendor each, from the file of this name.
const Vendor &nvidia_vendor() noexcept;
const Vendor &amd_vendor() noexcept;
const Vendor &intel_vendor() noexcept;

// Returns the vendors with a file of their own.
std::array<const Vendor *, 3> vendors() noexcept;

// Return the vendor with this name, or with this number on the PCI bus; nullptr for a vendor without a file.
const Vendor *find_vendor(std::string_view name) noexcept;
const Vendor *find_vendor(int64_t id) noexcept;

// Return whether a backend of some build serves the card's vendor, and whether the vendor's own driver holds the
// card.
bool is_of_served_vendor(const yoke_card_info &info) noexcept;
bool is_held_by_own_driver(const yoke_card_info &info) noexcept;

// Sets why each card cannot be used, or no reason for a usable card. A sleeping card or a missing management library
// is no reason.
void reject_cards(const Root &root, Machine &machine);

}  // namespace yoke
