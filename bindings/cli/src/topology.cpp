// yoke topology: how the cards are joined, to each other and to the network.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

constexpr const char *kLegend =
    "X    the card itself\n"
    "NV#  NVLink, and how many of them\n"
    "PIX  one PCI Express switch\n"
    "PXB  several switches, no host bridge\n"
    "PHB  a host bridge\n"
    "NODE host bridges of one NUMA node\n"
    "SYS  between NUMA nodes\n";

Json links_json(yoke_inventory *inventory)
{
    Json rows = Json::array();
    const int32_t count = yoke_inventory_count(inventory);
    for (int32_t a = 0; a < count; ++a) {
        Json row = Json::array();
        for (int32_t b = 0; b < count; ++b)
            row.push_back(link_json(get<yoke_card_link>(yoke_inventory_link, inventory, a, b)));
        rows.push_back(row);
    }
    return rows;
}

int print(bool json)
{
    const Inventory inventory = make<Inventory>(yoke_inventory_take);
    if (json) {
        Json cards = Json::array();
        for (const yoke_card_info &card : cards_of(inventory.get()))
            cards.push_back({{"index", card.index},
                             {"name", card.name},
                             {"uuid", card.uuid},
                             {"pci", card.pci}});
        print_json({{"cards", cards}, {"links", links_json(inventory.get())}});
        return 0;
    }
    if (yoke_inventory_count(inventory.get()) == 0) {
        puts("No GPU is in this machine, or none is shown to it (yoke doctor says why).");
        return 0;
    }
    printf("%s\n%s", yoke_inventory_topology(inventory.get()),
           coloured(Colour::kDim, kLegend).c_str());
    return 0;
}

}  // namespace

void add_topology(CLI::App &app, Action &action)
{
    auto json = std::make_shared<bool>(false);
    CLI::App *command = app.add_subcommand("topology", "How the cards are joined, as a matrix");
    command->add_flag("--json", *json, "For programs");
    command->callback([json, &action] { action = [json] { return print(*json); }; });
}

}  // namespace yoke::cli
