// inventory.h: the contents of the machine: every GPU with its state, the links between GPUs, and the users of each
// GPU.
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
    // Driver's numbers of an instance of a partitioned card.
    int32_t gpu_instance = -1, compute_instance = -1;
    // True if this process may use the card: in a container, the bus shows all cards of the host.
    bool granted = true;
    // Reason why the card cannot be used; info.reason is the text.
    Reason rejected = Reason::kNone;
};

struct NetworkCard {
    yoke_network_card info;
    std::vector<std::string> bridges;
};

// Dock not authorized by the system: devices behind the dock are on no bus.
struct UnauthorizedDock {
    std::string name, uuid;  // uuid: "" if unknown
};

enum class DriverFlavor : uint8_t { kUnknown, kOpen, kProprietary };

// The driver's management library.
struct Nvml {
    std::string version, path;  // "" if unknown
    NvmlFailure failure;

    bool answered() const { return !version.empty() && !failure; }
};

// Facts about the machine. Unknown facts are "", 0 or empty; facts.h turns them into words.
struct Machine {
    std::vector<Card> cards;
    std::vector<NetworkCard> networks;
    std::vector<yoke_card_link> links;  // row-major, cards.size() squared

    std::string driver;  // the version of the loaded kernel module
    DriverFlavor driver_flavor = DriverFlavor::kUnknown;
    Nvml nvml;
    int cuda_driver = 0;          // the newest CUDA served by the driver, 13000
    std::string visible_problem;  // why CUDA_VISIBLE_DEVICES was cut off, in words
    std::vector<UnauthorizedDock> docks;
    std::string container;        // container's engine, "docker"
    std::string virtual_machine;  // virtual machine's maker, "wsl"

    const Card &card(int i) const { return cards[static_cast<size_t>(i)]; }
    const yoke_card_link &link(int a, int b) const
    {
        return links[static_cast<size_t>(a) * cards.size() + static_cast<size_t>(b)];
    }
};

// Returns a card without known facts: -1, NaN and "" as in the public header.
Card unknown_card();

// Returns the failure of the management library in words, "" for none.
std::string nvml_failure_text(const Machine &machine);

// Sets why a card cannot be used. An empty rejection means that the card can be used.
void reject(Card &card, const Rejection &rejection);

// Returns a UUID without "GPU-" or "MIG-". Some sources write "GPU-" for instances too, and users omit the prefix.
std::string_view bare_uuid(std::string_view uuid);

// Returns whether two UUIDs mean the same card, in any spelling.
bool is_same_uuid(std::string_view a, std::string_view b);

// Returns a path such as "/sys/bus" under the root of YOKE_SYSROOT; without the variable, the path itself.
std::string under_sysroot(std::string_view path);

}  // namespace yoke
