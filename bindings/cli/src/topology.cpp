// yoke topology: how the cards are joined, to each other and to the network.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

constexpr const char *kLegend =
    "X: itself; NV#: # NVLinks; PIX: one PCI Express switch; PXB: several switches; PHB: a host bridge; NODE: host bridges of one NUMA node; SYS: between NUMA nodes";

// Column of the matrix: each card's link to a card or a port, or its nearest node.
struct Way {
    std::string title;
    std::vector<std::string> cells;  // by card
    int width() const
    {
        int most = width_of(title);
        for (const std::string &cell : cells) most = std::max(most, width_of(cell));
        return most;
    }
};

std::string title_of(const yoke_card_info &card)
{
    return (card.kind == YOKE_CARD_MIG ? "MIG" : "GPU") + std::to_string(card.index);
}

Way way_to_card(yoke_inventory *inventory, const yoke_card_info &card)
{
    Way way{title_of(card), {}};
    for (int32_t from = 0; from < yoke_inventory_count(inventory); ++from)
        way.cells.emplace_back(
            get<yoke_card_link>(yoke_inventory_link, inventory, from, card.index).label);
    return way;
}

Way way_to_port(yoke_inventory *inventory, int32_t index)
{
    Way way;
    for (int32_t card = 0; card < yoke_inventory_count(inventory); ++card) {
        yoke_network_card port{};
        port.struct_size = sizeof port;
        int32_t path = YOKE_PATH_SYSTEM;
        check(yoke_inventory_network(inventory, index, card, &port, &path));
        way.title = port.name + (port.port > 1 ? ":" + std::to_string(port.port) : "");
        way.cells.emplace_back(yoke_path_label(path));
    }
    return way;
}

std::vector<Way> ways_of(yoke_inventory *inventory, const std::vector<yoke_card_info> &cards)
{
    std::vector<Way> ways;
    for (const yoke_card_info &card : cards) ways.push_back(way_to_card(inventory, card));
    for (int32_t i = 0; i < yoke_inventory_network_count(inventory); ++i)
        ways.push_back(way_to_port(inventory, i));
    Way node{"NUMA", {}};
    for (const yoke_card_info &card : cards)
        node.cells.push_back(card.numa_node < 0 ? "-" : std::to_string(card.numa_node));
    ways.push_back(node);
    return ways;
}

// Returns how many ways from `first` on fit beside the cards' titles, at least 1.
size_t count_that_fit(const std::vector<Way> &ways, size_t first, int width)
{
    size_t end = first;
    for (int used = 0; end < ways.size(); ++end) {
        used += Table::kGap + ways[end].width();
        if (used > width && end > first) break;
    }
    return end - first;
}

// Prints the matrix, in as many parts below each other as the width needs.
void print_matrix(const std::vector<yoke_card_info> &cards, const std::vector<Way> &ways, int width)
{
    const int beside = width - width_of(title_of(cards.back()));
    for (size_t first = 0, count = 0; first < ways.size(); first += count) {
        count = count_that_fit(ways, first, beside);
        std::vector<Table::Column> columns{{""}};
        for (size_t i = first; i < first + count; ++i) columns.push_back({ways[i].title.c_str()});
        Table part(columns);
        for (size_t card = 0; card < cards.size(); ++card) {
            std::vector<std::string> cells{title_of(cards[card])};
            for (size_t i = first; i < first + count; ++i) cells.push_back(ways[i].cells[card]);
            part.add(cells);
        }
        printf("%s\n", part.text(width).c_str());
    }
}

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

int print_topology(bool json)
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
        puts("This machine has no GPU, or no GPU is visible (yoke doctor says why).");
        return 0;
    }
    const int width = terminal_width();
    const auto cards = cards_of(inventory.get());
    print_matrix(cards, ways_of(inventory.get(), cards), width);
    fputs(coloured(Colour::kDim, wrapped(kLegend, width, 0)).c_str(), stdout);
    return 0;
}

}  // namespace

void add_topology(CLI::App &app, Action &action)
{
    auto json = std::make_shared<bool>(false);
    CLI::App *command =
        app.add_subcommand("topology", "Print the connections between the cards, as a matrix");
    command->add_flag("--json", *json, "JSON output for programs");
    command->callback([json, &action] { action = [json] { return print_topology(*json); }; });
}

}  // namespace yoke::cli
