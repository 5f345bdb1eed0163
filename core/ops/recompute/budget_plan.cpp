#include "core/ops/recompute/budget_plan.h"

#include "core/ops/recompute/budget_segment.h"

#include <algorithm>
#include <cmath>
#include <queue>

namespace yoke {

namespace {

constexpr size_t kMostStops = 64;    // possible places of cuts
constexpr size_t kMostChoices = 12;  // sets of held results per segment
constexpr size_t kMostStates = 96;   // states followed at each place
constexpr int kTrials = 5;           // until a plan uses what there is

// ---- Figures of a plan ----------------------------------------------------------------------------------------

std::vector<uint32_t> stops_of(const BudgetPlan &plan)
{
    std::vector<uint32_t> stops{0};
    for (uint32_t i = 1; i < plan.cuts.size(); ++i)
        if (plan.cuts[i]) stops.push_back(i);
    stops.push_back(static_cast<uint32_t>(plan.cuts.size()));
    return stops;
}

// Returns a mark for each value kept by nodes of later scopes. Values read by calls of later scopes are added
// elsewhere.
std::vector<uint8_t> kept_later(const Profile &profile, std::span<const uint32_t> stops)
{
    std::vector<uint8_t> crosses(profile.values.size());
    for (size_t v = 0; v < crosses.size(); ++v) {
        const ProfiledValue &value = profile.values[v];
        if (value.last_saver == kNever) continue;
        crosses[v] = *std::ranges::upper_bound(stops, value.maker) <= value.last_saver;
    }
    return crosses;
}

}  // namespace

// Computes the bytes of living values at each call of forward. Held values live to the end.
static void settle_forward(const Profile &profile, const std::vector<uint8_t> &held,
                           std::vector<int64_t> &live)
{
    live.assign(profile.calls.size() + 1, 0);
    for (size_t v = 0; v < held.size(); ++v) {
        const ProfiledValue &value = profile.values[v];
        live[value.maker] += static_cast<int64_t>(value.bytes);
        if (!held[v] && value.last_alive < profile.calls.size())
            live[value.last_alive + 1] -= static_cast<int64_t>(value.bytes);
    }
    for (size_t i = 1; i < live.size(); ++i) live[i] += live[i - 1];
}

Levels explain(const Profile &profile, const BudgetPlan &plan)
{
    const size_t count = profile.calls.size();
    Levels levels{{}, std::vector<int64_t>(count), std::vector<int64_t>(count), 0, {}};
    Outlook &outlook = levels.outlook;
    const std::vector<uint32_t> stops = stops_of(plan);
    std::vector<uint8_t> crosses = kept_later(profile, stops), held(profile.values.size());
    Segment segment(profile);
    std::vector<SegmentCost> costs(stops.size() - 1);
    for (size_t s = costs.size(); s-- > 0;) {
        const uint32_t begin = stops[s], size = stops[s + 1] - begin;
        segment.begin(begin, stops[s + 1], crosses, plan.holds);
        segment.each_request([&](uint32_t v) { crosses[v] = 1; });
        costs[s] = segment.cost();
        segment.each_held([&](uint32_t v) { held[v] = 1; });
        segment.live_in_backward({&levels.before_node[begin], size},
                                 {&levels.in_node[begin], size});
        outlook.seconds += costs[s].seconds;
    }
    for (size_t s = 0; s < costs.size(); ++s) {
        for (uint32_t i = stops[s]; i < stops[s + 1]; ++i) {
            levels.before_node[i] += outlook.held;
            levels.in_node[i] += outlook.held;
        }
        outlook.peak = std::max(outlook.peak, outlook.held + costs[s].in_backward);
        outlook.held += costs[s].held;
    }
    settle_forward(profile, held, levels.in_forward);
    levels.at_turn = levels.in_forward.back();
    outlook.peak = std::max(outlook.peak, levels.at_turn + profile.at_turn);
    for (size_t i = 0; i < count; ++i)
        outlook.peak = std::max(outlook.peak, levels.in_forward[i] + profile.calls[i].in_forward);
    outlook.cuts = static_cast<uint32_t>(costs.size() - 1);
    return levels;
}

Outlook foresee(const Profile &profile, const BudgetPlan &plan)
{
    return profile.calls.empty() ? Outlook{} : explain(profile, plan).outlook;
}

BudgetPlan hold_all(const Profile &profile)
{
    return {std::vector<uint8_t>(profile.calls.size()),
            std::vector<uint8_t>(profile.calls.size(), 1)};
}

// ---- The search -----------------------------------------------------------------------------------------------

namespace {

// Dynamic programming over the places of cuts. A state has the bytes held by the calls before a place, and the
// seconds to recompute the rest.
class Search {
public:
    explicit Search(const Profile &profile);
    // Finds the fastest plan whose estimated peak is at most `bytes`. Returns false if no plan fits.
    bool run(int64_t bytes, BudgetPlan &plan);

private:
    struct Choice {
        int64_t held, most;
        double seconds;
        uint32_t holds;  // number of calls held, from the front of the order of holding
    };
    struct State {
        int64_t held;
        double seconds;
        uint32_t stop, before, choice;  // path to the state before
    };
    using Row = std::vector<Choice>;

    void choose_stops();
    Row choices_between(uint32_t from, uint32_t to);
    std::vector<uint32_t> order_of_holding();
    void go_on(size_t from, int64_t bytes);
    void keep_best(std::vector<State> &states) const;
    BudgetPlan plan_of(State last);
    void cross_at(uint32_t stop);

    const Profile &profile_;
    Segment segment_;
    std::vector<uint8_t> crosses_;
    std::vector<uint32_t> stops_;
    std::vector<std::vector<Row>> rows_;  // by first and last stop
    std::vector<std::vector<State>> states_;
};

// Chooses the possible places of cuts: divides the calls into stretches, and takes from each stretch the place that
// the fewest bytes cross.
void Search::choose_stops()
{
    const size_t count = profile_.calls.size();
    std::vector<int64_t> crossing(count + 1);
    for (const ProfiledValue &v : profile_.values) {
        const uint32_t last =
            v.last_saver == kNever ? v.last_read : std::max(v.last_read, v.last_saver);
        crossing[v.maker + 1] += static_cast<int64_t>(v.bytes);
        crossing[std::min<size_t>(last + 1, count)] -= static_cast<int64_t>(v.bytes);
    }
    for (size_t i = 1; i <= count; ++i) crossing[i] += crossing[i - 1];
    stops_ = {0};
    const size_t stretches = std::min(kMostStops, count);
    for (size_t k = 0; k < stretches; ++k) {
        size_t best = 0;
        for (size_t i = std::max<size_t>(1, k * count / stretches); i < (k + 1) * count / stretches;
             ++i)
            if (profile_.calls[i].can_cut && (!best || crossing[i] < crossing[best])) best = i;
        if (best) stops_.push_back(static_cast<uint32_t>(best));
    }
    stops_.push_back(static_cast<uint32_t>(count));
}

// Marks as crossing all values made before the stop and used by later calls or nodes.
void Search::cross_at(uint32_t stop)
{
    for (size_t i = 0; i < crosses_.size(); ++i) {
        const ProfiledValue &v = profile_.values[i];
        crosses_[i] = v.maker < stop &&
                      (v.last_read >= stop || (v.last_saver != kNever && v.last_saver >= stop));
    }
}

Search::Search(const Profile &profile)
    : profile_(profile), segment_(profile), crosses_(profile.values.size())
{
    choose_stops();
    rows_.resize(stops_.size());
    for (size_t to = 1; to < stops_.size(); ++to) {
        cross_at(stops_[to]);
        for (size_t from = 0; from < to; ++from) {
            rows_[from].resize(stops_.size());
            rows_[from][to] = choices_between(stops_[from], stops_[to]);
        }
    }
}

// Returns calls by seconds per byte, most first. Holding a call changes the gains of other calls, so the loop
// computes a call's gain again at the front of the queue.
std::vector<uint32_t> Search::order_of_holding()
{
    std::vector<uint32_t> order;
    std::priority_queue<std::pair<double, uint32_t>> queue;
    std::vector<uint32_t> later;  // calls whose results are held only after another call's
    const auto offer = [&](uint32_t call) {
        if (!segment_.may_hold(call)) return;
        const Segment::Gain gain = segment_.gain(call);
        if (gain.seconds > 0) queue.emplace(gain.rate(), call);
    };
    for (uint32_t i = segment_.first(); i < segment_.last(); ++i) {
        if (profile_.calls[i].needs != kNever) later.push_back(i);
        offer(i);
    }
    while (!queue.empty()) {
        const auto [rate, call] = queue.top();
        queue.pop();
        if (!segment_.may_hold(call)) continue;
        const Segment::Gain now = segment_.gain(call);
        if (now.seconds <= 0) continue;
        if (!queue.empty() && now.rate() < queue.top().first * (1 - 1e-9)) {
            queue.emplace(now.rate(), call);
            continue;
        }
        segment_.hold(call);
        order.push_back(call);
        for (const uint32_t i : later)
            if (profile_.calls[i].needs == call) offer(i);
    }
    return order;
}

Search::Row Search::choices_between(uint32_t from, uint32_t to)
{
    const auto cost_now = [&](uint32_t holds) {
        const SegmentCost cost = segment_.cost();
        return Choice{cost.held, std::max(cost.in_forward, cost.in_backward), cost.seconds, holds};
    };
    segment_.begin(from, to, crosses_);
    std::vector<uint32_t> crossing;
    segment_.hold_crossing(crossing);
    const std::vector<uint32_t> order = order_of_holding();
    segment_.begin(from, to, crosses_);
    for (const uint32_t call : crossing) segment_.hold(call);
    Row row{cost_now(0)};
    const size_t most = kMostChoices - 1;
    size_t taken = 0;
    for (uint32_t k = 0; k < order.size(); ++k) {
        segment_.hold(order[k]);
        if ((k + 1) * most / order.size() == taken) continue;  // so many, evenly spread
        taken = (k + 1) * most / order.size();
        row.push_back(cost_now(k + 1));
    }
    return row;
}

// Keeps the states not worse in both memory and time than another state. If these are many, keeps a state for each
// range of memory.
void Search::keep_best(std::vector<State> &states) const
{
    std::ranges::sort(states, [](const State &a, const State &b) {
        return a.held != b.held ? a.held < b.held : a.seconds < b.seconds;
    });
    std::vector<State> kept;
    for (const State &state : states)
        if (kept.empty() || state.seconds < kept.back().seconds) kept.push_back(state);
    if (kept.size() > kMostStates) {
        const int64_t range =
            (kept.back().held - kept.front().held) / static_cast<int64_t>(kMostStates) + 1;
        std::vector<State> few;
        for (const State &state : kept) {
            if (!few.empty() && few.size() > 1 && few.back().held / range == state.held / range)
                few.back() = state;
            else
                few.push_back(state);
        }
        kept = std::move(few);
    }
    states = std::move(kept);
}

void Search::go_on(size_t from, int64_t bytes)
{
    std::vector<State> &here = states_[from];
    keep_best(here);
    for (uint32_t at = 0; at < here.size(); ++at)
        for (size_t to = from + 1; to < stops_.size(); ++to) {
            const Row &row = rows_[from][to];
            for (uint32_t k = 0; k < row.size(); ++k)
                if (here[at].held + row[k].most <= bytes)
                    states_[to].push_back({here[at].held + row[k].held,
                                           here[at].seconds + row[k].seconds,
                                           static_cast<uint32_t>(from), at, k});
        }
}

bool Search::run(int64_t bytes, BudgetPlan &plan)
{
    states_.assign(stops_.size(), {});
    states_[0].push_back({0, 0, 0, 0, 0});
    for (size_t from = 0; from + 1 < stops_.size(); ++from) go_on(from, bytes);
    const State *best = nullptr;
    for (const State &state : states_.back())
        if (state.held + profile_.at_turn <= bytes && (!best || state.seconds < best->seconds))
            best = &state;
    if (!best) return false;
    plan = plan_of(*best);
    return true;
}

BudgetPlan Search::plan_of(State last)
{
    BudgetPlan plan{std::vector<uint8_t>(profile_.calls.size()),
                    std::vector<uint8_t>(profile_.calls.size())};
    for (size_t to = stops_.size() - 1; to > 0;) {
        cross_at(stops_[to]);
        segment_.begin(stops_[last.stop], stops_[to], crosses_);
        std::vector<uint32_t> crossing;
        segment_.hold_crossing(crossing);
        const std::vector<uint32_t> order = order_of_holding();
        for (const uint32_t call : crossing) plan.holds[call] = 1;
        const uint32_t holds = rows_[last.stop][to][last.choice].holds;
        for (uint32_t k = 0; k < holds; ++k) plan.holds[order[k]] = 1;
        if (last.stop) plan.cuts[stops_[last.stop]] = 1;
        to = last.stop;
        if (to) last = states_[to][last.before];
    }
    return plan;
}

}  // namespace

BudgetPlan find_plan(const Profile &profile, int64_t bytes)
{
    BudgetPlan best = hold_all(profile);
    Outlook outlook = foresee(profile, best);
    if (outlook.peak <= bytes || profile.calls.empty()) return best;
    Search search(profile);
    // The search overestimates the held bytes, so its limit may exceed `bytes`, but never so much that the
    // plan itself exceeds `bytes`.
    bytes = std::max<int64_t>(bytes, 0);
    int64_t low = 0, high = 2 * outlook.peak, allowed = bytes;
    bool fits = false;
    for (int trial = 0; trial < kTrials || !fits; ++trial) {
        BudgetPlan plan;
        const bool is_found = search.run(allowed, plan);
        const Outlook found = is_found ? foresee(profile, plan) : Outlook{};
        if (is_found && (found.peak <= bytes) >= fits &&
            (found.peak <= bytes ? !fits || found.seconds < outlook.seconds
                                 : found.peak < outlook.peak)) {
            best = std::move(plan);
            outlook = found;
            fits |= found.peak <= bytes;
        }
        if (!is_found || found.peak <= bytes)
            low = allowed;
        else
            high = allowed;
        if (is_found && found.peak <= bytes)
            allowed = std::min(allowed + (bytes - found.peak) + 1, (allowed + high) / 2);
        else
            allowed = (low + high) / 2;
        if (high - low <= bytes / 256 + 1) break;
    }
    return best;
}

}  // namespace yoke
