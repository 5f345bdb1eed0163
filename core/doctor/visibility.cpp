// Checks 18 to 20, 30, 49 and 50: the GPUs as the environment's variables select them.
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/doctor/checks.h"

#include <algorithm>
#include <cstring>

namespace yoke::doctor {

namespace {

// Returns whether two GPUs have the same compute capability, with memory and multiprocessors within 75 % of the
// larger, as DataParallel asks.
bool alike(const yoke_card_info &a, const yoke_card_info &b)
{
    // Unknown values (-1) do not tell two cards apart.
    const auto near = [](double x, double y) {
        return x < 0 || y < 0 || std::min(x, y) >= 0.75 * std::max(x, y);
    };
    return a.cc_major == b.cc_major && a.cc_minor == b.cc_minor &&
           near(static_cast<double>(a.memory_total), static_cast<double>(b.memory_total)) &&
           near(a.multiprocessors, b.multiprocessors);
}

// Returns the largest set of like cards; of equal sets, the first.
std::vector<int> largest_set(const Facts &facts, const std::vector<int> &cards)
{
    std::vector<int> best;
    for (const int first : cards) {
        std::vector<int> set;
        for (const int other : cards) {
            bool fits = alike(card(facts, first), card(facts, other));
            for (const int member : set)
                fits = fits && alike(card(facts, member), card(facts, other));
            if (fits) set.push_back(other);
        }
        if (set.size() > best.size()) best = set;
    }
    return best;
}

std::string uuids_of(const Facts &facts, const std::vector<int> &cards)
{
    return joined(cards, ",", [&](int i) { return card(facts, i).uuid; });
}

}  // namespace

Finding check_visible_devices(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    if (!facts.is_set("CUDA_VISIBLE_DEVICES")) return ok("CUDA_VISIBLE_DEVICES is not set");
    const std::string value = facts.variable("CUDA_VISIBLE_DEVICES");
    const std::string &problem = facts.visible.problem, &dropped = facts.visible.dropped;
    if (problem.empty() && dropped.empty())
        return ok(format("CUDA_VISIBLE_DEVICES is '%s': %zu GPUs", value.c_str(),
                         facts.visible.cards.size()));
    const std::string &better = facts.visible.corrected;
    const std::string both = problem + (problem.empty() || dropped.empty() ? "" : "; ") + dropped;
    return found(
        problem.empty() ? kWarn : kFail,
        format("CUDA_VISIBLE_DEVICES is '%s', of which CUDA takes %zu: %s", value.c_str(),
               facts.visible.cards.size(), both.c_str()),
        better.empty() ? "unset CUDA_VISIBLE_DEVICES" : "export CUDA_VISIBLE_DEVICES=" + better);
}

Finding check_late_variable(const Facts &facts)
{
    const LibraryCopy *cuda = facts.library("cuda");
    if (!cuda || !cuda->mapped) return skip("CUDA is not loaded in this process");
    // A program may set the variable before its first use of CUDA.
    if (!facts.cuda_opened) return skip("Yoke has not opened CUDA in this process");
    Findings all;
    for (const char *name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "CUDA_MODULE_LOADING"}) {
        const auto before = facts.first_variables.find(name);
        const std::string first = before == facts.first_variables.end() ? "" : before->second;
        if (first == facts.variable(name)) continue;
        all.add(
            kWarn,
            format("%s was '%s' when the process started and is '%s' now, while %s is loaded", name,
                   first.c_str(), facts.variable(name).c_str(), cuda->path.c_str()),
            format("export %s=%s # before the program starts", name, facts.variable(name).c_str()));
    }
    return all.or_ok("the variables are as they were when the process started");
}

Finding check_device_order(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    const std::vector<int> cards = working_gpus(facts);
    if (facts.variable("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")
        return ok("CUDA_DEVICE_ORDER is PCI_BUS_ID");
    for (const int i : cards)
        if (strcmp(card(facts, i).name, card(facts, cards[0]).name) != 0)
            return found(
                kWarn,
                label(facts, cards[0]) + " and " + label(facts, i) +
                    " differ: CUDA numbers GPUs from the fastest, nvidia-smi by the PCI bus",
                "export CUDA_DEVICE_ORDER=PCI_BUS_ID", i);
    return ok("all GPUs are of one model");
}

Finding check_homogeneous(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    std::vector<int> cards;
    for (const int i : facts.visible.cards)
        if (card(facts, i).kind == YOKE_CARD_GPU) cards.push_back(i);
    if (cards.size() < 2) return skip("fewer than two GPUs are visible");
    const std::vector<int> set = largest_set(facts, cards);
    if (set.size() == cards.size()) return ok(format("all %zu GPUs are alike", cards.size()));
    for (const int i : cards)
        if (std::find(set.begin(), set.end(), i) == set.end())
            return found(kWarn,
                         label(facts, i) + " is not like " + label(facts, set[0]) +
                             ": in one group, all GPUs wait for the slowest",
                         "export CUDA_VISIBLE_DEVICES=" + uuids_of(facts, set), i);
    return ok("all GPUs are alike");
}

Finding check_variables(const Facts &facts)
{
    Findings all;
    for (const ConfigProblem &problem : facts.config_problems)
        all.add(kFail, problem.text, problem.key.empty() ? "" : "unset " + problem.key);
    for (const auto &[name, meant] : facts.misspelt)
        all.add(kWarn, "there is no setting " + name + "; probably " + meant + " is meant",
                "export " + meant + "=\"$" + name + "\" && unset " + name);
    return all.or_ok("all variables that are set can be read");
}

Finding check_all_hidden(const Facts &facts)
{
    if (const auto none = no_working_gpus(facts)) return skip(*none);
    if (!facts.visible.cards.empty())
        return ok(format("%zu of %zu GPUs are visible", facts.visible.cards.size(),
                         working_gpus(facts).size()));
    if (!facts.visible.problem.empty()) return skip("the list is cut off (check 18)");
    if (!facts.is_set("CUDA_VISIBLE_DEVICES")) return skip("no variable hides a GPU");
    return found(kWarn,
                 "CUDA_VISIBLE_DEVICES is '" + facts.variable("CUDA_VISIBLE_DEVICES") +
                     "', which hides every GPU",
                 "unset CUDA_VISIBLE_DEVICES");
}

}  // namespace yoke::doctor
