// AMD's cards: listed, with the facts of the kernel's driver.
#include "core/machine/vendor.h"

namespace yoke {

namespace {

class Amd final : public Vendor {
public:
    constexpr Amd() : Vendor(0x1002, "amd", "AMD") {}

    void read_card(const Folder &device, yoke_card_info &info) const override
    {
        const std::string product = device.text("product_name", sizeof info.name);
        if (!product.empty()) put(info.name, product);
        const int64_t total = device.number("mem_info_vram_total");
        const int64_t used = device.number("mem_info_vram_used");
        if (total <= 0) return;
        info.memory_total = total;
        // A processor's own graphics have a window of the processor's memory; no card is that small.
        constexpr int64_t kLeastOfACard = int64_t{1} << 30;
        if (total < kLeastOfACard) info.kind = YOKE_CARD_INTEGRATED;
        if (used < 0) return;
        info.memory_used = used;
        info.memory_free = total - used;
    }
};
constexpr Amd amd;

}  // namespace

const Vendor &amd_vendor() noexcept
{
    return amd;
}

}  // namespace yoke
