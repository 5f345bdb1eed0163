// Intel's cards, and the graphics of Intel's processors: listed.
#include "core/machine/vendor.h"

namespace yoke {

namespace {

class Intel final : public Vendor {
public:
    constexpr Intel() : Vendor(0x8086, "intel", "Intel") {}

    // Marks the graphics of a processor, by their address: they are on the processor's own bus.
    void place_card(yoke_card_info &info) const override
    {
        if (std::string_view(info.pci).starts_with("0000:00:")) info.kind = YOKE_CARD_INTEGRATED;
    }
};
constexpr Intel intel;

}  // namespace

const Vendor &intel_vendor() noexcept
{
    return intel;
}

}  // namespace yoke
