// vendor.h: a maker of cards: what its driver and its files tell beyond the PCI bus, in one file for each.
//
// A snapshot asks every vendor in the order in which the functions stand here. What a vendor does not tell stays
// unknown.
#pragma once

#include "core/machine/files.h"
#include "core/machine/inventory.h"

#include <array>
#include <string_view>

namespace yoke {

class Vendor {
public:
    // Its number on the PCI bus, its name as yoke_card_info::vendor has it, and as people write it.
    constexpr Vendor(int64_t id, const char *name, const char *brand)
        : id_(id), name_(name), brand_(brand)
    {
    }

    int64_t id() const noexcept { return id_; }
    const char *name() const noexcept { return name_; }
    const char *brand() const noexcept { return brand_; }

    // The loaded kernel module.
    virtual void read_driver(const Root &, Machine &) const {}
    // A card of its own on the bus: by its address alone, then, unless it sleeps, from its folder there.
    virtual void place_card(yoke_card_info &) const {}
    virtual void read_card(const Folder &, yoke_card_info &) const {}
    // Cards that the bus lost, then what stands on no bus.
    virtual void add_vanished_cards(const Root &, Machine &) const {}
    virtual void add_integrated_cards(const Root &, Machine &) const {}
    // Its management library; without `links` only of the cards that are there.
    virtual void ask_driver(const Root &, Machine &, bool /*links*/) const {}
    // What the library did not tell, and which cards are this process's.
    virtual void complete_cards(const Root &, Machine &) const {}
    // Why its cards cannot be used: by default because no backend serves them.
    virtual void reject_cards(const Root &, Machine &) const;
    // The numbers that its runtime gives the cards.
    virtual void number_devices(Machine &) const {}
    // Whether its own kernel driver holds a card.
    virtual bool holds(const yoke_card_info &) const { return false; }

protected:
    ~Vendor() = default;  // all live as long as the library
    bool is_ours(const Card &card) const { return std::string_view(card.info.vendor) == name_; }

private:
    int64_t id_;
    const char *name_, *brand_;
};

// Each is in the file of its name.
const Vendor &nvidia_vendor() noexcept;
const Vendor &amd_vendor() noexcept;
const Vendor &intel_vendor() noexcept;

// The ones with a file of their own.
std::array<const Vendor *, 3> vendors() noexcept;

// By a name or a number on the PCI bus; nullptr for one without a file.
const Vendor *find_vendor(std::string_view name) noexcept;
const Vendor *find_vendor(int64_t id) noexcept;

// Whether a backend of some build serves the vendor's cards, and whether the vendor's own driver holds this one.
bool is_of_served_vendor(const yoke_card_info &info) noexcept;
bool is_held_by_own_driver(const yoke_card_info &info) noexcept;

// Fills in the reasons of all cards that have none yet. To sleep is no reason; nor is a missing management library.
void reject_cards(const Root &root, Machine &machine);

}  // namespace yoke
