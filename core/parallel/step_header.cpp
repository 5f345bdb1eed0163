#include "core/parallel/step_header.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/comm/numbers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

namespace yoke {

namespace {

constexpr int64_t kPresences = 4;        // values of a presence in a spot
constexpr int64_t kNumbers = 1LL << 25;  // values of a module number; a spot fits a double

// Place of a rank in a backward: a module, and the next module.
struct Spot {
    int64_t module, next;
    bool operator==(const Spot &) const = default;
};

std::string describe_next(const Spot &spot)
{
    return spot.next ? format(" and next through module %lld", static_cast<long long>(spot.next))
                     : " and through no other module";
}

}  // namespace

StepHeader::StepHeader(Group &group, size_t params, int64_t module, const StepTerms &terms)
    : group_(group), params_(params), module_(module), terms_(terms)
{
}

int64_t StepHeader::spot(int64_t next) const noexcept
{
    return (next * kNumbers + module_) * kPresences + static_cast<int64_t>(terms_.presence);
}

// Sends these numbers in order by an all_reduce: whether this rank uses each parameter; zeros up to the size of the
// group's largest module; the weight; a spot of each rank; a weight of each rank. So the call has the same length for
// each module of the group. If ranks go back through unlike modules, they can find this out.
void StepHeader::send(const std::vector<bool> &uses, int64_t next)
{
    const auto size = static_cast<size_t>(group_.size());
    std::vector<double> mine(uses.begin(), uses.end());
    mine.resize(std::max(mine.size(), group_.backwards().most_params()));
    mine.push_back(terms_.weight);
    const size_t place = mine.size() + static_cast<size_t>(group_.rank());
    mine.resize(mine.size() + 2 * size);
    mine[place] = static_cast<double>(spot(next));
    mine[place + size] = terms_.weight;
    shared_ = tensor_of(mine, "backward");
    sharing_ = group_.run({YOKE_COMM_ALL_REDUCE, YOKE_REDUCE_SUM, -1, shared_, shared_}, true);
}

void StepHeader::receive()
{
    const Interruptible waits("backward");
    sharing_->wait(-1);
    used_ = numbers_of<double>(shared_, "backward");
    const auto size = static_cast<size_t>(group_.size());
    const std::span<const double> all = used_, weights = all.last(size);
    const auto [least, most] = std::ranges::minmax(weights);
    heaviest_ = most;
    is_even_ = least == most;
    const std::vector<int64_t> presences = take_spots(all.last(2 * size).first(size));
    check_presences(presences);
    const auto out = static_cast<int64_t>(Presence::kOut);
    const auto root = std::ranges::find_if(presences, [](int64_t each) { return each != out; });
    if (root != presences.end()) root_ = static_cast<int32_t>(root - presences.begin());
    used_[params_] = all[all.size() - 2 * size - 1];
    used_.resize(params_ + 1);
    has_come_ = true;
}

double StepHeader::factor(double weight) const
{
    const double all = weight_of_all();
    if (!std::isfinite(all))
        fail(
            YOKE_E_VALUE,
            "%s: the sum of all ranks' weights is %g, and the weight of this rank is %g; use smaller weights on all ranks",
            "backward", all, terms_.weight);
    return is_even_ ? 1 : weight / all * group_.size();
}

// Returns the presence of each rank. Raises YOKE_E_STATE if the ranks do not go back through the same module, and
// then the same next module.
std::vector<int64_t> StepHeader::take_spots(std::span<const double> told) const
{
    std::vector<Spot> spots;
    std::vector<int64_t> presences;
    for (const double each : told) {
        const auto number = static_cast<int64_t>(each);
        spots.push_back({number / kPresences % kNumbers, number / kPresences / kNumbers});
        presences.push_back(number % kPresences);
    }
    const auto other = std::ranges::adjacent_find(spots, std::not_equal_to());
    if (other == spots.end()) return presences;
    const Spot &first = spots[0], &second = other[1];
    const bool is_same = first.module == second.module;
    const auto rank = static_cast<size_t>(other - spots.begin()) + 1;
    fail(
        YOKE_E_STATE,
        "%s: the backward of %s goes through module %lld of this group%s, but the backward of %s through module %lld%s, counted in the order of wrapping; run the same modules in the same order on all ranks",
        terms_.call(), describe(group_.ranks()[0]).c_str(), static_cast<long long>(first.module),
        is_same ? describe_next(first).c_str() : "", describe(group_.ranks()[rank]).c_str(),
        static_cast<long long>(second.module), is_same ? describe_next(second).c_str() : "");
}

// Raises YOKE_E_STATE unless all ranks are in a join, or no rank is. Otherwise ranks without data would wait for
// ranks outside the join.
void StepHeader::check_presences(std::span<const int64_t> presences) const
{
    const auto is_plain = [](int64_t each) {
        return each == static_cast<int64_t>(Presence::kPlain);
    };
    const auto plain = std::ranges::find_if(presences, is_plain);
    const auto joined = std::ranges::find_if_not(presences, is_plain);
    if (plain == presences.end() || joined == presences.end()) return;
    const auto shown = [&](auto which) {
        return describe(group_.ranks()[static_cast<size_t>(which - presences.begin())]);
    };
    fail(
        YOKE_E_STATE,
        "%s: %s %s join, but %s is not in a join; either all ranks or no ranks must loop over their batches in a join",
        terms_.call(), shown(joined).c_str(),
        *joined == static_cast<int64_t>(Presence::kOut) ? "has ended its" : "is in a",
        shown(plain).c_str());
}

}  // namespace yoke
