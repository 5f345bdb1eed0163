#include "core/ops/recompute/budget_segment.h"

#include <algorithm>

namespace yoke {

Segment::Segment(const Profile &profile)
    : profile_(profile),
      crosses_(profile.values.size()),
      held_(profile.values.size()),
      needed_(profile.calls.size()),
      uses_(profile.values.size()),
      steps_(profile.calls.size() + 1),
      left_(profile.values.size())
{
}

void Segment::begin(uint32_t begin, uint32_t end, const std::vector<uint8_t> &crosses,
                    const std::vector<uint8_t> &holds)
{
    begin_ = begin;
    end_ = end;
    const auto by_maker = [](const ProfiledValue &v, uint32_t call) { return v.maker < call; };
    const auto &values = profile_.values;
    const auto first = std::lower_bound(values.begin(), values.end(), begin, by_maker);
    first_value_ = static_cast<uint32_t>(first - values.begin());
    last_value_ = static_cast<uint32_t>(std::lower_bound(first, values.end(), end, by_maker) -
                                        values.begin());
    for (uint32_t v = first_value_; v < last_value_; ++v) {
        crosses_[v] = crosses[v];
        held_[v] = !holds.empty() && holds[values[v].maker];
        uses_[v] = is_saved(v);
    }
    for (uint32_t i = end; i-- > begin;) {
        needed_[i] = makes_anything(i);
        if (!needed_[i]) continue;
        for (const uint32_t v : profile_.reads(i))
            if (is_inside(v)) ++uses_[v];
    }
}

// Returns whether the call makes a value that is used and not held.
bool Segment::makes_anything(uint32_t call) const
{
    return std::ranges::any_of(profile_.makes(call),
                               [&](uint32_t v) { return is_inside(v) && !held_[v] && uses_[v]; });
}

// Drops the call, if it need not be recomputed any more, and the calls needed only for this call.
void Segment::drop_unneeded(uint32_t call)
{
    dropped_.clear();
    if (!needed_[call] || makes_anything(call)) return;
    needed_[call] = 0;
    dropped_.push_back(call);
    for (size_t next = 0; next < dropped_.size(); ++next)
        for (const uint32_t v : profile_.reads(dropped_[next])) {
            if (!is_inside(v) || --uses_[v] || held_[v]) continue;
            const uint32_t maker = profile_.values[v].maker;
            if (!needed_[maker] || makes_anything(maker)) continue;
            needed_[maker] = 0;
            dropped_.push_back(maker);
        }
}

void Segment::hold_crossing(std::vector<uint32_t> &calls)
{
    for (uint32_t i = begin_; i < end_; ++i) {
        const auto made = profile_.makes(i);
        const bool crosses = std::ranges::any_of(made, [&](uint32_t v) { return crosses_[v]; });
        if (!crosses || !may_hold(i)) continue;
        hold(i);
        calls.push_back(i);
    }
}

bool Segment::may_hold(uint32_t call) const
{
    const ProfiledCall &it = profile_.calls[call];
    return needed_[call] && it.can_hold && (it.needs == kNever || !needed_[it.needs]);
}

void Segment::hold(uint32_t call)
{
    for (const uint32_t v : profile_.makes(call)) held_[v] = 1;
    drop_unneeded(call);
}

Segment::Gain Segment::gain(uint32_t call)
{
    Gain gain;
    const auto made = profile_.makes(call);
    uint32_t before = 0;  // a bit for each result
    for (size_t k = 0; k < made.size(); ++k) before |= uint32_t{held_[made[k]]} << k;
    hold(call);
    for (const uint32_t dropped : dropped_) gain.seconds += profile_.calls[dropped].seconds;
    for (size_t k = 0; k < made.size(); ++k) {
        if (uses_[made[k]] && !(before >> k & 1))
            gain.bytes += static_cast<int64_t>(profile_.values[made[k]].bytes);
        held_[made[k]] = before >> k & 1;
    }
    for (const uint32_t dropped : dropped_) {
        needed_[dropped] = 1;
        for (const uint32_t v : profile_.reads(dropped))
            if (is_inside(v)) ++uses_[v];
    }
    return gain;
}

// ---- Figures of a segment -------------------------------------------------------------------------------------

template <class Visit>
void Segment::each_value(Visit visit) const
{
    for (uint32_t v = first_value_; v < last_value_; ++v)
        visit(v, profile_.values[v], static_cast<int64_t>(profile_.values[v].bytes));
}

SegmentCost Segment::cost() const
{
    SegmentCost cost;
    each_value([&](uint32_t v, const ProfiledValue &, int64_t bytes) {
        if (is_held(v)) cost.held += bytes;
    });
    for (uint32_t i = begin_; i < end_; ++i)
        if (needed_[i]) cost.seconds += profile_.calls[i].seconds;
    cost.in_forward = most_in_forward();
    const uint32_t from = trigger();
    cost.in_backward = std::max(most_in_replay(from), most_in_backward());
    return cost;
}

// Returns the last call whose node keeps a recomputed value; kNever if there is none.
uint32_t Segment::trigger() const
{
    uint32_t last = kNever;
    each_value([&](uint32_t v, const ProfiledValue &value, int64_t) {
        if (!held_[v] && is_saved(v) && (last == kNever || value.last_saver > last))
            last = value.last_saver;
    });
    return last;
}

// Returns the peak in forward. A held value lives to the end of the segment, any other value as long as the script
// has it.
int64_t Segment::most_in_forward() const
{
    std::fill(steps_.begin() + begin_, steps_.begin() + end_ + 1, 0);
    each_value([&](uint32_t v, const ProfiledValue &value, int64_t bytes) {
        steps_[value.maker] += bytes;
        steps_[is_held(v) ? end_ : std::min(value.last_alive + 1, end_)] -= bytes;
    });
    int64_t live = 0, most = 0;
    for (uint32_t i = begin_; i < end_; ++i)
        most = std::max(most, (live += steps_[i]) + profile_.calls[i].in_forward);
    return most;
}

int64_t Segment::most_in_replay(uint32_t trigger) const
{
    if (trigger == kNever) return 0;
    int64_t live = profile_.calls[trigger].before_node;
    each_value([&](uint32_t v, const ProfiledValue &value, int64_t bytes) {
        left_[v] = uses_[v];
        if (held_[v] && (is_source(v) || (is_saved(v) && value.first_saver <= trigger)))
            live += bytes;
    });
    int64_t most = live;
    const auto size = [&](uint32_t v) { return static_cast<int64_t>(profile_.values[v].bytes); };
    for (uint32_t i = begin_; i < end_; ++i) {
        if (!needed_[i]) continue;
        int64_t in_vain = 0;
        for (const uint32_t v : profile_.makes(i)) {
            if (!is_inside(v) || profile_.values[v].maker != i) continue;
            live += uses_[v] && !held_[v] ? size(v) : 0;
            in_vain += uses_[v] && !held_[v] ? 0 : size(v);
        }
        most = std::max(most, live + in_vain);
        for (const uint32_t v : profile_.reads(i))
            if (is_inside(v) && !held_[v] && --left_[v] == 0) live -= size(v);
    }
    return most;
}

void Segment::live_in_backward(std::span<int64_t> before, std::span<int64_t> in) const
{
    const uint32_t from = trigger();
    int64_t made_again = 0;
    std::ranges::fill(in, 0);
    const auto add = [&](uint32_t first, uint32_t behind, int64_t bytes) {
        in[first - begin_] += bytes;
        if (behind < end_) in[behind - begin_] -= bytes;
    };
    each_value([&](uint32_t v, const ProfiledValue &value, int64_t bytes) {
        if (held_[v] && is_source(v))
            add(begin_, end_, bytes);
        else if (is_saved(v))
            add(value.first_saver, held_[v] ? end_ : from + 1, bytes);
        if (!held_[v] && is_saved(v) && value.first_saver <= from) made_again += bytes;
    });
    for (size_t i = 1; i < in.size(); ++i) in[i] += in[i - 1];
    for (size_t i = 0; i < in.size(); ++i)
        before[i] = in[i] - (begin_ + i == from ? made_again : 0);
}

int64_t Segment::most_in_backward() const
{
    std::vector<int64_t> before(end_ - begin_), in(end_ - begin_);
    live_in_backward(before, in);
    int64_t most = 0;
    for (size_t i = 0; i < in.size(); ++i)
        most = std::max(most, in[i] + profile_.calls[begin_ + i].in_node);
    return most;
}

}  // namespace yoke
