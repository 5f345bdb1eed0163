// yoke select SPEC: chosen cards as a value for CUDA_VISIBLE_DEVICES; with --explain the reason for each card.
#include "bindings/cli/src/command.h"
#include "bindings/cli/src/json.h"
#include "bindings/cli/src/text.h"

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

namespace yoke::cli {

namespace {

struct SelectOptions {
    std::string spec = "auto";
    bool explain = false, json = false;
};

std::string title_of(const yoke_candidate &candidate, const std::vector<yoke_card_info> &cards)
{
    if (candidate.card < 0) return candidate.device;
    const yoke_card_info &card = cards[static_cast<size_t>(candidate.card)];
    return std::string(card.name) + " " + (*card.pci ? card.pci : card.uuid);
}

std::vector<yoke_candidate> candidates_of(yoke_explanation *explanation)
{
    std::vector<yoke_candidate> all;
    for (int32_t i = 0; i < yoke_explanation_count(explanation); ++i)
        all.push_back(get<yoke_candidate>(yoke_explanation_get, explanation, i));
    return all;
}

// Prints each device with its verdict; a reason shared by neighbours stands under the last.
void print_explained(yoke_explanation *explanation)
{
    const auto cards = cards_of(yoke_explanation_inventory(explanation));
    const auto all = candidates_of(explanation);
    const int width = terminal_width();
    for (size_t i = 0; i < all.size(); ++i) {
        const yoke_candidate &one = all[i];
        const Colour colour = one.chosen >= 0 ? Colour::kGood
                              : one.accepted  ? Colour::kPlain
                                              : Colour::kDim;
        const char *verdict = one.chosen >= 0 ? "chosen  " : one.accepted ? "fits    " : "rejected";
        fprintf(stderr, "%s %s%s%s\n", coloured(colour, verdict, stderr).c_str(), one.device,
                *one.device ? "  " : "", one.card < 0 ? "" : title_of(one, cards).c_str());
        const bool is_shared = i + 1 < all.size() && one.accepted == all[i + 1].accepted &&
                               std::string_view(one.reason) == all[i + 1].reason;
        if (!is_shared) fputs(wrapped(one.reason, width, 9).c_str(), stderr);
    }
}

// Returns a problem without the reasons of all devices, because these were printed separately.
std::string without_reasons(const std::string &problem, yoke_explanation *explanation)
{
    size_t first = problem.npos;
    for (const yoke_candidate &one : candidates_of(explanation))
        if (!one.accepted) first = std::min(first, problem.find(one.reason));
    // "no device fits: NVIDIA H100 (cuda:0): its reason"
    const size_t name = first == problem.npos || first < 3 ? first : problem.rfind(": ", first - 3);
    return name == problem.npos ? problem : problem.substr(0, name);
}

void print_as_json(yoke_explanation *explanation, const std::string &spec)
{
    const auto cards = cards_of(yoke_explanation_inventory(explanation));
    Json all = Json::array();
    for (const yoke_candidate &one : candidates_of(explanation)) {
        Json entry = {{"device", one.device},
                      {"accepted", one.accepted != 0},
                      {"chosen", one.chosen},
                      {"reason", one.reason}};
        if (one.card >= 0) entry["uuid"] = cards[static_cast<size_t>(one.card)].uuid;
        all.push_back(entry);
    }
    print_json({{"spec", spec},
                {"cuda_visible_devices", yoke_explanation_visible(explanation)},
                {"problem", yoke_explanation_problem(explanation)},
                {"candidates", all}});
}

int select(const SelectOptions &options)
{
    const Explanation explanation = make<Explanation>(yoke_explain, options.spec.c_str());
    std::string problem = yoke_explanation_problem(explanation.get());
    if (options.json) print_as_json(explanation.get(), options.spec);
    if (options.explain) print_explained(explanation.get());
    if (!problem.empty()) {
        if (options.explain) problem = without_reasons(problem, explanation.get());
        fprintf(stderr, "yoke: select: %s\n", problem.c_str());
        return 1;
    }
    const std::string visible = yoke_explanation_visible(explanation.get());
    if (!options.json) puts(visible.c_str());
    if (visible.empty() && options.spec != "cpu" &&
        options.spec.find("fallback=silent") == options.spec.npos)
        fputs("yoke: select: the CPU is chosen (--explain says why)\n", stderr);
    return 0;
}

}  // namespace

void add_select(CLI::App &app, Action &action)
{
    auto options = std::make_shared<SelectOptions>();
    CLI::App *command =
        app.add_subcommand("select", "Select cards, as a value for CUDA_VISIBLE_DEVICES");
    command->footer(
        "Example: CUDA_VISIBLE_DEVICES=$(yoke select auto:n=2,min_free=20GiB,same=nvlink) python train.py\n"
        "An empty line means that the CPU is chosen. The keys wait and lease have no effect here. A rank of a job gets its own card. Exit code: 0, chosen; 1, nothing fits; 2, the spec is wrong.");
    command->add_option("SPEC", options->spec,
                        "auto:n=2,min_free=8GiB,min_cc=8.0,max_util=20,same=nvlink,… (auto)");
    command->add_flag("--explain", options->explain,
                      "Print each device with its result and reason, on stderr");
    command->add_flag("--json", options->json, "JSON output for programs, with all results");
    command->callback([options, &action] { action = [options] { return select(*options); }; });
}

}  // namespace yoke::cli
