// The search for the best set of devices: behind choice.h.
#include "core/select/choice.h"

#include "core/machine/topology.h"

#include <algorithm>
#include <bit>
#include <tuple>

namespace yoke::detail {

namespace {

// Merits of a set, in order of importance.
struct Score {
    int leased = 0;
    int worst_join = 1 << 20, joins = 0;
    double link = 0;
    int64_t free_memory = 0;
    int load = 0;
};

bool is_better(const Score &a, const Score &b)
{
    return std::tuple(a.leased, -a.worst_join, -a.joins, -a.link, -a.free_memory, a.load) <
           std::tuple(b.leased, -b.worst_join, -b.joins, -b.link, -b.free_memory, b.load);
}

// Joins and togetherness of all pairs, looked up once.
class Pairs {
public:
    Pairs(const Machine &machine, const Spec &spec, const std::vector<Contender> &all)
        : count_(all.size()), quality_(count_ * count_), together_(count_ * count_)
    {
        for (size_t a = 0; a < count_; ++a)
            for (size_t b = 0; b < count_; ++b) {
                if (a == b) continue;
                quality_[a * count_ + b] = join_quality(machine, all[a].card, all[b].card);
                together_[a * count_ + b] = go_together(machine, spec, all[a].card, all[b].card);
            }
    }
    int quality(size_t a, size_t b) const { return quality_[a * count_ + b]; }
    bool together(size_t a, size_t b) const { return together_[a * count_ + b]; }

private:
    size_t count_;
    std::vector<int> quality_;
    std::vector<char> together_;
};

// Returns `score` with another device in the set.
Score with(Score score, const std::vector<Contender> &all, const Pairs &pairs,
           const std::vector<size_t> &set, size_t more)
{
    score.leased += all[more].leased;
    score.link += all[more].link;
    score.free_memory += all[more].free_memory;
    score.load += all[more].load;
    for (const size_t each : set) {
        score.worst_join = std::min(score.worst_join, pairs.quality(each, more));
        score.joins += pairs.quality(each, more);
    }
    return score;
}

bool fits_in(const Pairs &pairs, const std::vector<size_t> &set, size_t more)
{
    return std::all_of(set.begin(), set.end(),
                       [&](size_t each) { return pairs.together(each, more); });
}

// Search of every set. Each set is built in the order of its members, so of equal sets the first stays.
struct Exhaustive {
    const std::vector<Contender> &all;
    const Pairs &pairs;
    size_t count;
    std::vector<size_t> set, best;
    Score best_score;

    void extend(size_t from, const Score &score)
    {
        if (set.size() == count) {
            if (best.empty() || is_better(score, best_score)) best = set, best_score = score;
            return;
        }
        for (size_t i = from; i + (count - set.size()) <= all.size(); ++i) {
            if (!fits_in(pairs, set, i)) continue;
            const Score longer = with(score, all, pairs, set, i);
            set.push_back(i);
            extend(i + 1, longer);
            set.pop_back();
        }
    }
};

// Returns a set grown from one device by the best fit each time; empty if the growth ends too early.
std::vector<size_t> grown_from(size_t first, const std::vector<Contender> &all, const Pairs &pairs,
                               size_t count, Score *score)
{
    std::vector<size_t> set{first};
    *score = with({}, all, pairs, {}, first);
    while (set.size() < count) {
        size_t chosen = all.size();
        Score chosen_score;
        for (size_t i = 0; i < all.size(); ++i) {
            if (std::find(set.begin(), set.end(), i) != set.end() || !fits_in(pairs, set, i))
                continue;
            const Score longer = with(*score, all, pairs, set, i);
            if (chosen == all.size() || is_better(longer, chosen_score))
                chosen = i, chosen_score = longer;
        }
        if (chosen == all.size()) return {};
        set.push_back(chosen);
        *score = chosen_score;
    }
    return set;
}

std::vector<size_t> grown(const std::vector<Contender> &all, const Pairs &pairs, size_t count)
{
    std::vector<size_t> best;
    Score best_score;
    for (size_t first = 0; first < all.size(); ++first) {
        Score score;
        const std::vector<size_t> set = grown_from(first, all, pairs, count, &score);
        if (!set.empty() && (best.empty() || is_better(score, best_score)))
            best = set, best_score = score;
    }
    std::sort(best.begin(), best.end());
    return best;
}

bool is_at_least_three_quarters(int64_t a, int64_t b)
{
    if (a < 0 || b < 0) return a == b;
    return 4 * std::min(a, b) >= 3 * std::max(a, b);
}

bool is_alike(const yoke_card_info &a, const yoke_card_info &b)
{
    return a.cc_major == b.cc_major && a.cc_minor == b.cc_minor &&
           is_at_least_three_quarters(a.memory_total, b.memory_total) &&
           is_at_least_three_quarters(a.multiprocessors, b.multiprocessors);
}

bool is_joined(const Machine &machine, Spec::Same same, int a, int b)
{
    const yoke_card_link &link = machine.link(a, b);
    const int node = machine.card(a).info.numa_node;
    const bool one_node = node >= 0 && node == machine.card(b).info.numa_node;
    switch (same) {
        case Spec::Same::kNvlink:
            return link.nvlinks > 0;
        case Spec::Same::kSwitch:
            return link.path >= 0 && link.path <= YOKE_PATH_SWITCH;
        case Spec::Same::kNuma:
            return one_node || (link.path >= 0 && link.path <= YOKE_PATH_NODE);
        case Spec::Same::kAnything:
            break;
    }
    return true;
}

}  // namespace

double link_rate(const yoke_card_info &info)
{
    const int generation =
        info.link_generation_max > 0 ? info.link_generation_max : info.link_generation;
    const int width = info.link_width > 0 ? info.link_width : info.link_width_max;
    const double rate = pcie_rate(generation, width);
    // A dock's cable is the narrowest place on the way, whatever the slot inside reports.
    return info.enclosure_rate > 0 ? std::min(rate, info.enclosure_rate / 8) : rate;
}

bool is_before(const Contender &a, const Contender &b)
{
    return std::tuple(a.leased, -a.link, -a.free_memory, a.load, -a.card) <
           std::tuple(b.leased, -b.link, -b.free_memory, b.load, -b.card);
}

bool is_before_for_ranks(const Contender &a, const Contender &b)
{
    return std::tuple(a.leased, -a.link, -a.memory, a.number, a.card) <
           std::tuple(b.leased, -b.link, -b.memory, b.number, b.card);
}

int join_quality(const Machine &machine, int a, int b)
{
    const yoke_card_link &link = machine.link(a, b);
    if (link.nvlinks > 0) return 1000 + link.nvlinks;
    return link.path < 0 ? 0 : 100 - link.path;
}

bool go_together(const Machine &machine, const Spec &spec, int a, int b)
{
    if (!is_joined(machine, spec.same, a, b)) return false;
    return !spec.homogeneous || is_alike(machine.card(a).info, machine.card(b).info);
}

std::vector<Contender> best_set(const Machine &machine, const Spec &spec,
                                const std::vector<Contender> &fitting, size_t count)
{
    if (count > fitting.size()) return {};
    const Pairs pairs(machine, spec, fitting);
    std::vector<size_t> best;
    if (fitting.size() <= kExactCards) {
        Exhaustive search{fitting, pairs, count, {}, {}, {}};
        search.extend(0, {});
        best = search.best;
    } else {
        best = grown(fitting, pairs, count);
    }
    std::vector<Contender> set;
    for (const size_t each : best) set.push_back(fitting[each]);
    return set;
}

}  // namespace yoke::detail
