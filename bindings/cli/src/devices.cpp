// yoke devices: a table of every GPU in the machine, usable or not; and the catalog of models.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/output.h"
#include "bindings/cli/src/text.h"

#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

struct DevicesOptions {
    bool json = false, watch = false, catalog = false, processes = false, list = false;
    double every = 2;
};

std::string place_of(const yoke_card_info &card)
{
    return card.visible < 0 ? "-" : "cuda:" + std::to_string(card.visible);
}

std::string link_of(const yoke_card_info &card)
{
    if (card.link_generation < 0) return "-";
    return "gen" + std::to_string(card.link_generation) + " x" + std::to_string(card.link_width);
}

std::string memory_of(const yoke_card_info &card)
{
    if (card.memory_total < 0) return "-";
    return (card.memory_used < 0 ? "-" : std::to_string(card.memory_used >> 20)) + "/" +
           mebibytes(card.memory_total);
}

std::string power_of(const yoke_card_info &card)
{
    const std::string limit = number(card.power_limit, "W");
    return limit == "-" ? number(card.power, "W") : number(card.power, "") + "/ " + limit;
}

const char *state_of(const yoke_card_info &card)
{
    if (card.present == 0) return "lost";
    if (*card.reason) return "unusable";
    if (card.asleep == 1) return "asleep";
    if (card.throttle &
        (YOKE_THROTTLE_HW_SLOWDOWN | YOKE_THROTTLE_HW_THERMAL | YOKE_THROTTLE_POWER_BRAKE))
        return "held back";
    return card.visible < 0 ? "hidden" : "ok";  // a card without a backend has a reason
}

Colour colour_of(std::string_view state)
{
    if (state == "ok") return Colour::kPlain;
    return state == "lost" || state == "unusable" ? Colour::kBad
           : state == "held back"                 ? Colour::kWarn
                                                  : Colour::kDim;
}

std::string percent(double share)
{
    return number(share * 100, "%");
}

// Names a card; the mark of an eGPU stands first, where a narrow terminal does not cut it off.
std::string name_of(const yoke_card_info &card, const char *otherwise)
{
    return std::string(card.is_egpu == 1 ? "eGPU " : "") + (*card.name ? card.name : otherwise);
}

// Returns how a card differs from a card in a slot; "" if it does not.
std::string place_in_words(const yoke_card_info &card)
{
    if (card.kind == YOKE_CARD_INTEGRATED && card.memory_total >= 0)
        return "the GPU is part of the processor's chip, and shares the host's memory";
    if (card.is_egpu != 1) return "";
    std::string text = "the GPU is external (eGPU)";
    if (*card.enclosure) text += std::string(" in ") + card.enclosure;
    if (card.enclosure_rate > 0)
        text += ", behind a cable of " + number(card.enclosure_rate * 1e-9, " Gbit/s");
    return text;
}

// Prints "#0–7: why they cannot be used": a shared reason appears once.
void print_reasons(const std::vector<yoke_card_info> &cards, int width)
{
    for (size_t i = 0; i < cards.size();) {
        size_t end = i + 1;
        while (end < cards.size() && std::string_view(cards[end].reason) == cards[i].reason) ++end;
        const std::string first = std::to_string(cards[i].index),
                          last = end - i > 1 ? "–" + std::to_string(cards[end - 1].index) : "";
        if (*cards[i].reason)
            fputs(wrapped("#" + first + last + ": " + cards[i].reason, width, 2).c_str(), stdout);
        i = end;
    }
}

void print_cards(const std::vector<yoke_card_info> &cards, int width)
{
    Table table({{"#", true},
                 {"DEVICE"},
                 {"NAME"},
                 {"USED/MEMORY", true},
                 {"UTIL", true},
                 {"TEMP", true},
                 {"STATE"},
                 {"POWER", true, true},
                 {"LINK", false, true},
                 {"PCI", false, true},
                 {"UUID", false, true}});
    for (const yoke_card_info &card : cards) {
        const char *state = state_of(card);
        table.add({std::to_string(card.index), place_of(card), name_of(card, "-"), memory_of(card),
                   percent(card.utilization), number(card.temperature, "C"), state, power_of(card),
                   link_of(card), *card.pci ? card.pci : "-", *card.uuid ? card.uuid : "-"},
                  colour_of(state));
    }
    fputs(table.text(width).c_str(), stdout);
    for (const yoke_card_info &card : cards)
        if (const std::string text = place_in_words(card); !text.empty())
            fputs(wrapped("#" + std::to_string(card.index) + ": " + text, width, 2).c_str(),
                  stdout);
    print_reasons(cards, width);
}

// Prints a line for each card with its whole UUID.
void print_list(const std::vector<yoke_card_info> &cards)
{
    for (const yoke_card_info &card : cards)
        printf("%s#%d: %s (%s%s%s%s)%s%s\n", card.kind == YOKE_CARD_MIG ? "  " : "", card.index,
               name_of(card, "a card").c_str(), *card.uuid ? "UUID: " : "",
               *card.uuid ? card.uuid : "no UUID is known", *card.pci ? ", " : "", card.pci,
               card.visible < 0 ? "" : " ", card.visible < 0 ? "" : place_of(card).c_str());
}

void print_processes(yoke_inventory *inventory, const std::vector<yoke_card_info> &cards, int width)
{
    Table table({{"#", true},
                 {"PID", true},
                 {"MEMORY", true},
                 {"NAME"},
                 {"USER", false, true},
                 {"CONTAINER", false, true}});
    bool any = false;
    for (const yoke_card_info &card : cards)
        for (int32_t i = 0; i < card.process_count; ++i, any = true) {
            const auto p = get<yoke_card_process>(yoke_inventory_process, inventory, card.index, i);
            table.add({std::to_string(card.index), std::to_string(p.pid), mebibytes(p.memory_used),
                       *p.name ? p.name : "(hidden)", p.user,
                       std::string(p.container).substr(0, 12)});
        }
    if (any) printf("\n%s", table.text(width).c_str());
    for (const yoke_card_info &card : cards)
        if (card.hidden_processes > 0 || card.hidden_memory > (int64_t{64} << 20))
            fputs(wrapped("#" + std::to_string(card.index) + ": " +
                              std::to_string(std::max(0, card.hidden_processes)) +
                              " hidden processes, " + mebibytes(card.hidden_memory) +
                              " in use by no visible process",
                          width, 2)
                      .c_str(),
                  stdout);
}

std::string fact(yoke_inventory *inventory, const char *key)
{
    const char *text = "";
    check(yoke_inventory_fact(inventory, key, &text));
    return text;
}

// Returns the processor, or why it is unavailable. If a platform demanded by YOKE_PLATFORMS is missing, every device
// is refused, but the table must still end.
std::string host_text()
{
    yoke_device *opened = nullptr;
    if (yoke_device_open("cpu", &opened) != YOKE_OK) return yoke_last_error()->message;
    const Device host(opened);
    return std::string(yoke_device_name(opened)) + ", " + std::to_string(yoke_get_num_threads()) +
           " threads";
}

void print_machine(yoke_inventory *inventory, int width)
{
    const std::string driver = fact(inventory, "driver"), cuda = fact(inventory, "cuda_driver");
    std::string line = driver.empty() ? "no NVIDIA driver is loaded" : "driver " + driver;
    if (!fact(inventory, "driver_flavor").empty())
        line += " (" + fact(inventory, "driver_flavor") + ")";
    if (!cuda.empty()) line += ", CUDA " + cuda;
    for (const char *key : {"nvml_problem", "visible_devices", "docks"})
        if (const std::string text = fact(inventory, key); !text.empty()) line += "; " + text;
    if (yoke_is_available("cpu")) line += "\ncpu: " + host_text();
    fputs(wrapped(line, width, 0).c_str(), stdout);
}

void print_once(const DevicesOptions &options)
{
    const Inventory inventory = make<Inventory>(yoke_inventory_take);
    if (options.json) return print_json(machine_json(inventory.get()));
    const int width = terminal_width();
    const auto cards = cards_of(inventory.get());
    if (options.list && !cards.empty()) return print_list(cards);
    if (cards.empty())
        puts("This machine has no GPU, or no GPU is visible (yoke doctor says why).");
    else
        print_cards(cards, width);
    if (options.processes) print_processes(inventory.get(), cards, width);
    print_machine(inventory.get(), width);
}

volatile std::sig_atomic_t stopped = 0;

int watch(const DevicesOptions &options)
{
    std::signal(SIGINT, [](int) { stopped = 1; });
    while (!stopped) {
        if (isatty(STDOUT_FILENO)) fputs("\033[H\033[2J", stdout);
        print_once(options);
        flush_output();
        usleep(static_cast<useconds_t>(options.every * 1e6));
    }
    return 0;
}

int print_catalog(bool json)
{
    Json all = Json::array();
    Table table({{"NAME"},
                 {"MEMORY", true},
                 {"BANDWIDTH", true},
                 {"CC", true},
                 {"F16", true},
                 {"F8", true},
                 {"BF16", true, true},
                 {"POWER", true, true},
                 {"SMs", true, true},
                 {"F32", true, true},
                 {"LINK", false, true},
                 {"NVLINK", true, true}});
    const auto shown = [](double value, const char *unit) {
        return value > 0 ? rate(value, unit) : std::string("-");
    };
    for (int32_t i = 0; i < yoke_catalog_count(); ++i) {
        const auto e = get<yoke_catalog_card>(yoke_catalog_get, i);
        all.push_back(catalog_json(e));
        table.add(
            {e.name, e.memory > 0 ? mebibytes(e.memory) : "-", shown(e.memory_bandwidth, "B/s"),
             std::to_string(e.cc_major) + "." + std::to_string(e.cc_minor),
             shown(e.f16_rate, "op/s"), shown(e.f8_rate, "op/s"), number(e.power, "W"),
             std::to_string(e.multiprocessors), shown(e.f32_rate, "op/s"),
             e.link_generation > 0
                 ? "gen" + std::to_string(e.link_generation) + " x" + std::to_string(e.link_width)
                 : std::string("-"),
             shown(e.nvlink_bandwidth, "B/s")});
    }
    if (json)
        print_json(all);
    else
        fputs(table.text(terminal_width()).c_str(), stdout);
    return 0;
}

}  // namespace

void add_devices(CLI::App &app, Action &action)
{
    auto options = std::make_shared<DevicesOptions>();
    CLI::App *command = app.add_subcommand(
        "devices", "List every GPU in the machine, its state, and why a GPU is not usable");
    command->add_flag(
        "--json", options->json,
        "JSON output for programs; sizes in bytes, rates in base units; null: not known");
    CLI::Option *watch_flag = command->add_flag("--watch", options->watch, "Repeat until Ctrl-C");
    command
        ->add_option("--every", options->every,
                     "Seconds between updates of --watch (0.1 to 3600; 2)")
        ->needs(watch_flag)
        ->check(seconds_between(0.1, 3600.0));
    CLI::Option *processes_flag = command->add_flag("--processes", options->processes,
                                                    "Also show the processes on each card");
    command->add_flag("-L,--list", options->list,
                      "Print a line for each card, with its whole UUID");
    command
        ->add_flag("--catalog", options->catalog,
                   "Print the models of Yoke's catalog, with their makers' figures")
        ->excludes(watch_flag)
        ->excludes(processes_flag);
    command->callback([options, &action] {
        action = [options] {
            if (options->catalog) return print_catalog(options->json);
            if (options->watch) return watch(*options);
            print_once(*options);
            return 0;
        };
    });
}

}  // namespace yoke::cli
