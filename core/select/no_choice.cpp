// Texts about why no device fits a spec: the implementation for choice.h.
#include "core/backend/registry.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/select/choice.h"

#include <algorithm>
#include <map>

namespace yoke {

namespace {

std::string joined_how(const Spec &spec)
{
    const char *const words[] = {"", "joined by NVLink", "on one PCI Express switch",
                                 "on one NUMA node"};
    std::string text = words[static_cast<int>(spec.same)];
    if (spec.homogeneous) add_part(text, "alike", " and ");
    return text;
}

// Returns a text for cards with the same reason. If all have one name and a number each, the text gives the range of
// devices: "8 × NVIDIA H200 (cuda:0–7)".
std::string names_of(const Machine &machine, const Situation &situation, const Spec &spec,
                     const std::vector<int> &cards)
{
    std::vector<std::string> names;
    std::vector<int> numbers;
    std::string kind;
    bool is_range = cards.size() > 1 && spec.form == Spec::Form::kAuto && spec.kind.empty();
    for (const int card : cards) {
        names.push_back(detail::name_of(machine, situation, spec, card));
        if (card == kCpuCandidate) {
            is_range = false;
            continue;
        }
        const std::string &device = situation.states[static_cast<size_t>(card)].device;
        numbers.push_back(detail::number_of_device(device));
        is_range &= numbers.back() >= 0 && std::string_view(machine.card(card).info.name) ==
                                               machine.card(cards[0]).info.name;
        kind = device.substr(0, device.rfind(':'));
    }
    if (!is_range) return join(names);
    return format("%zu × %s (%s:%s)", cards.size(), machine.card(cards[0]).info.name, kind.c_str(),
                  ranges_text(numbers).c_str());
}

// Returns every rejected device with its reason, each reason once.
std::string rejections(const Machine &machine, const Situation &situation, const Spec &spec,
                       const std::vector<Verdict> &verdicts)
{
    std::vector<std::pair<std::string, std::vector<int>>> groups;
    std::map<std::string, size_t> places;
    for (const Verdict &verdict : verdicts) {
        if (verdict.accepted) continue;
        const auto [place, is_new] = places.try_emplace(verdict.reason, groups.size());
        if (is_new) groups.push_back({verdict.reason, {}});
        groups[place->second].second.push_back(verdict.card);
    }
    std::vector<std::string> all;
    for (const auto &[reason, cards] : groups)
        all.push_back(names_of(machine, situation, spec, cards) + ": " + reason);
    return join(all, "; ");
}

}  // namespace

int detail::number_of_device(const std::string &device)
{
    const size_t colon = device.rfind(':');
    if (colon == device.npos) return -1;
    return parsed<int>(std::string_view(device).substr(colon + 1)).value_or(-1);
}

std::string detail::no_set(const Machine &machine, const Situation &situation, const Spec &spec,
                           const std::vector<Contender> &fitting, int count)
{
    std::string text =
        format("%zu devices fit, but no %d of them are ", fitting.size(), count) + joined_how(spec);
    for (size_t fewer = static_cast<size_t>(count) - 1; fewer > 0; --fewer) {
        const auto set = detail::best_set(machine, spec, fitting, fewer);
        if (set.empty()) continue;
        if (fewer == 1) return count == 2 ? text : text + ", nor any two";
        std::vector<std::string> names;
        for (const Contender &each : set)
            names.push_back(detail::name_of(machine, situation, spec, each.card));
        return text + format("; n=%zu would fit: ", fewer) + join(names);
    }
    return text;
}

std::string detail::too_few(const Machine &machine, const Situation &situation, const Spec &spec,
                            const std::vector<Verdict> &verdicts, size_t fitting, int count)
{
    const bool no_cards = machine.cards.empty();
    const std::string rejected = rejections(machine, situation, spec, verdicts);
    std::string text = fitting == 0
                           ? (count == 1 ? "no device fits" : "no device fits")
                           : format("only %zu of the %d requested devices fit", fitting, count);
    if (no_cards) text += "; this machine shows no GPU";
    if (no_cards && situation.gpu_problem) text += ", and CUDA reports: " + *situation.gpu_problem;
    text += detail::nearest_card(machine, situation, spec);
    text += rejected.empty() ? "" : ": " + rejected;
    const bool cpu_would_do =
        no_cards && !situation.cpu_problem && spec.form == Spec::Form::kAuto && spec.kind.empty();
    return text + (cpu_would_do ? "; the spec 'cpu', without constraints, works" : "");
}

std::string ranges_text(std::vector<int> numbers)
{
    std::sort(numbers.begin(), numbers.end());
    std::string text;
    for (size_t i = 0; i < numbers.size();) {
        size_t end = i + 1;
        while (end < numbers.size() && numbers[end] == numbers[end - 1] + 1) ++end;
        add_part(text, std::to_string(numbers[i]), ",");
        if (end - i > 1) text += (end - i > 2 ? "–" : ",") + std::to_string(numbers[end - 1]);
        i = end;
    }
    return text;
}

}  // namespace yoke
