// yoke bench device: measured rates of a device, beside the maker's figures and the CPU's rates.
#include "bindings/cli/src/bench.h"

#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cmath>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

struct BenchOptions {
    std::string spec = "auto", svg;
    double seconds = 0.5;
    bool json = false;
};

std::string shown(const Figure &figure)
{
    if (std::string_view(figure.unit) != "s") return rate(figure.value, figure.unit);
    char text[32];
    snprintf(text, sizeof text, "%.2f us", figure.value * 1e6);
    return text;
}

std::string ratio(double share, const char *format)
{
    char text[32];
    snprintf(text, sizeof text, format, share);
    return text;
}

// Returns how many times as fast as the CPU the device is; for a duration, how many times as short.
double speedup(const Figure &figure)
{
    return std::string_view(figure.unit) == "s" ? figure.cpu / figure.value
                                                : figure.value / figure.cpu;
}

void print_text(const Bench &bench)
{
    printf("%s: %s%s\n", bench.device.c_str(), bench.name.c_str(),
           bench.model.empty() ? ", not in the catalog" : (", catalog: " + bench.model).c_str());
    Table table({{"WHAT"},
                 {"MEASURED", true},
                 {"+-", true},
                 {"CATALOG", true},
                 {"SHARE", true},
                 {"x CPU", true}});
    for (const Figure &figure : bench.figures)
        table.add({figure.name, shown(figure), ratio(figure.spread * 50, "%.0f %%"),
                   figure.nominal > 0 ? rate(figure.nominal, figure.unit) : "-",
                   figure.nominal > 0 ? ratio(100 * figure.value / figure.nominal, "%.0f %%") : "-",
                   figure.cpu > 0 ? ratio(speedup(figure), "%.1f") : "-"});
    fputs(table.text(terminal_width()).c_str(), stdout);
}

// Prints rates from each device to each other, with their share of the catalog's figure for this link.
void print_peers(const Bench &bench)
{
    if (bench.peers.empty()) return;
    std::vector<Table::Column> columns{{"FROM \\ TO"}};
    for (const std::string &peer : bench.peers) columns.push_back({peer.c_str(), true});
    Table matrix(columns);
    for (size_t from = 0; from < bench.peers.size(); ++from) {
        std::vector<std::string> cells{bench.peers[from]};
        for (size_t to = 0; to < bench.peers.size(); ++to) {
            const double measured = bench.peer_rates[from * bench.peers.size() + to];
            std::string cell = from == to ? "X" : rate(measured, "B/s");
            if (from != to && bench.peer_nominal > 0)
                cell += ratio(100 * measured / bench.peer_nominal, " %.0f %%");
            cells.push_back(cell);
        }
        matrix.add(cells);
    }
    printf("\n%s", matrix.text(terminal_width()).c_str());
}

void print_as_json(const Bench &bench)
{
    Json figures = Json::array();
    for (const Figure &f : bench.figures)
        figures.push_back({{"name", f.name},
                           {"unit", f.unit},
                           {"value", f.value},
                           {"spread", f.spread},
                           {"catalog", f.nominal > 0 ? Json(f.nominal) : Json()},
                           {"cpu", f.cpu > 0 ? Json(f.cpu) : Json()}});
    print_json({{"device", bench.device},
                {"name", bench.name},
                {"catalog", bench.model.empty() ? Json() : Json(bench.model)},
                {"figures", figures},
                {"peers", bench.peers},
                {"peer_rates", bench.peer_rates},
                {"peer_catalog", bench.peer_nominal > 0 ? Json(bench.peer_nominal) : Json()}});
}

int run(const BenchOptions &options)
{
    const Device device = make<Device>(yoke_device_open, options.spec.c_str());
    const Bench bench = measure(device.get(), options.seconds);
    if (options.json) {
        print_as_json(bench);
    } else {
        print_text(bench);
        print_peers(bench);
    }
    if (!options.svg.empty()) write_svg(bench, options.svg);  // last: a bad path loses no figure
    return 0;
}

}  // namespace

void add_bench(CLI::App &app, Action &action)
{
    auto options = std::make_shared<BenchOptions>();
    CLI::App *bench =
        app.add_subcommand("bench", "Measure a device, or collectives")->require_subcommand(0, 1);
    CLI::App *command = bench->add_subcommand(
        "device",
        "Measure products, copies and launches of a device; compare with its catalog and the CPU");
    command->add_option("SPEC", options->spec, "The device (auto)");
    command->add_option("--seconds", options->seconds, "Seconds for each figure (0.01 to 60; 0.5)")
        ->check(seconds_between(0.01, 60.0));
    command->add_option("--svg", options->svg, "Also write a picture (SVG) to this file")
        ->check(not_empty());
    command->add_flag("--json", options->json, "JSON output for programs, in base units");
    command->callback([options, &action] { action = [options] { return run(*options); }; });
    add_bench_collectives(*bench, action);
}

}  // namespace yoke::cli
