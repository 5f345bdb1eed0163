#include "core/machine/vendor.h"

#include "core/backend/traits.h"

namespace yoke {

namespace {

constexpr const char *kNotServed =
    "no backend of this build supports the card; use the cpu, or an NVIDIA card";

}  // namespace

void Vendor::reject_cards(const Root &, Machine &machine) const
{
    for (Card &card : machine.cards)
        if (is_ours(card)) reject(card, {Reason::kNoBackend, kNotServed});
}

std::array<const Vendor *, 3> vendors() noexcept
{
    return {&nvidia_vendor(), &amd_vendor(), &intel_vendor()};
}

const Vendor *find_vendor(std::string_view name) noexcept
{
    for (const Vendor *each : vendors())
        if (name == each->name()) return each;
    return nullptr;
}

const Vendor *find_vendor(int64_t id) noexcept
{
    for (const Vendor *each : vendors())
        if (id == each->id()) return each;
    return nullptr;
}

bool is_of_served_vendor(const yoke_card_info &info) noexcept
{
    return *kind_serving(info.vendor) != '\0';
}

bool is_held_by_own_driver(const yoke_card_info &info) noexcept
{
    const Vendor *vendor = find_vendor(std::string_view(info.vendor));
    return vendor && vendor->holds(info);
}

void reject_cards(const Root &root, Machine &machine)
{
    for (const Vendor *each : vendors()) each->reject_cards(root, machine);
    for (Card &card : machine.cards)
        if (!find_vendor(std::string_view(card.info.vendor)))
            reject(card, {Reason::kNoBackend, kNotServed});
}

}  // namespace yoke
