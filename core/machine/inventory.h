// inventory.h: what is in the machine: every GPU with its state, how they are joined, who uses them.
#pragma once

#include "core/base/text.h"
#include "core/machine/nvml_failure.h"
#include "core/machine/rejection.h"
#include "yoke/inventory.h"

#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct Card {
    yoke_card_info info;
    std::vector<yoke_card_process> processes;
    std::vector<std::string>
        bridges;  // PCI addresses on the way up, from the card's own port to the root
    // Of an instance of a partitioned card: the numbers that the driver counts it by.
    int32_t gpu_instance = -1, compute_instance = -1;
    // Whether this process may have it: in a container cards of the host show on the bus that are not the container's.
    bool granted = true;
    // Why it cannot be used; info.reason is its text.
    Reason rejected = Reason::kNone;
};

struct NetworkCard {
    yoke_network_card info;
    std::vector<std::string> bridges;
};

// A dock that the system has not let in: what is behind it is on no bus.
struct UnauthorizedDock {
    std::string name, uuid;  // uuid: "" where it tells none
};

enum class DriverFlavor : uint8_t { kUnknown, kOpen, kProprietary };

// The driver's management library.
struct Nvml {
    std::string version, path;  // "" for what is not known
    NvmlFailure failure;

    bool answered() const { return !version.empty() && !failure; }
};

// What is not known is "", 0 or empty; facts.h puts it in words.
struct Machine {
    std::vector<Card> cards;
    std::vector<NetworkCard> networks;
    std::vector<yoke_card_link> links;  // row-major, cards.size() squared

    std::string driver;  // the version of the loaded kernel module
    DriverFlavor driver_flavor = DriverFlavor::kUnknown;
    Nvml nvml;
    int cuda_driver = 0;          // the newest CUDA that the driver serves, 13000
    std::string visible_problem;  // what cut CUDA_VISIBLE_DEVICES off, in words
    std::vector<UnauthorizedDock> docks;
    std::string container;        // its engine, "docker"
    std::string virtual_machine;  // its maker, "wsl"

    const Card &card(int i) const { return cards[static_cast<size_t>(i)]; }
    const yoke_card_link &link(int a, int b) const
    {
        return links[static_cast<size_t>(a) * cards.size() + static_cast<size_t>(b)];
    }
};

// A card of which nothing is known yet: -1, NaN and "" as the public header says.
Card unknown_card();

// What the failure of the management library is in words, "" for none.
std::string nvml_failure_text(const Machine &machine);

// Says why a card cannot be used, or with an empty rejection that it can.
void reject(Card &card, const Rejection &rejection);

// A UUID without "GPU-" or "MIG-": some sources write the first one for instances too, and users leave it out.
std::string_view bare_uuid(std::string_view uuid);

// Whether two UUIDs mean one card, however each source writes it.
bool is_same_uuid(std::string_view a, std::string_view b);

// "/sys/bus" under YOKE_SYSROOT.
std::string under_sysroot(std::string_view path);

}  // namespace yoke
