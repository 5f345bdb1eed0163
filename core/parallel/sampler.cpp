#include "core/parallel/sampler.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/comm/coalesce.h"
#include "core/comm/exchange.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kSampler = "DistributedSampler";
constexpr int64_t kMostExamples = int64_t{1} << 62;  // places with padding fit as well

uint64_t hashed(uint64_t value)
{
    return next_mixed(value);
}

void check_shares(const SamplerOptions &options)
{
    if (std::ssize(options.shares) != options.size)
        fail(YOKE_E_VALUE,
             "%s: argument 'shares' has %zu numbers for %d ranks; give one number for each rank",
             kSampler, options.shares.size(), options.size);
    double sum = 0;
    for (const double each : options.shares) {
        if (!(each > 0))
            fail(
                YOKE_E_VALUE,
                "%s: argument 'shares' has %g; each share must be above 0, and their sum must be 1",
                kSampler, each);
        sum += each;
    }
    constexpr double kRounding = 1e-6;
    if (!(std::abs(sum - 1) < kRounding))
        fail(YOKE_E_VALUE, "%s: argument 'shares' has the sum %g; the sum must be 1", kSampler,
             sum);
    if (options.drops_last)
        fail(
            YOKE_E_VALUE,
            "%s: arguments 'drop_last' and 'shares' are both given; give only one of them, because with shares no example is left out",
            kSampler);
}

SamplerOptions checked(SamplerOptions options)
{
    if (options.count < 0 || options.count > kMostExamples)
        fail(YOKE_E_VALUE, "%s: argument 'n' is %lld; it must be 0 to %lld examples", kSampler,
             static_cast<long long>(options.count), static_cast<long long>(kMostExamples));
    if (options.size < 1 || options.rank < 0 || options.rank >= options.size)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'rank' is %d and 'world_size' is %d; 'world_size' must be 1 or more, and 'rank' 0 to world_size - 1",
            kSampler, options.rank, options.size);
    if (options.shares.empty()) return options;
    check_shares(options);
    options.is_padded = false;
    return options;
}

}  // namespace

// ---- The order of an epoch --------------------------------------------------------------------------------------

// Sets up a Feistel network over the least even number of bits that holds count. It has at least 6 bits, because a
// small network reaches few permutations. A result beyond count is mixed again until it is below count.
Shuffle::Shuffle(int64_t count, int64_t seed, int64_t epoch) : count_(static_cast<uint64_t>(count))
{
    constexpr int kLeast = 3;
    half_ = std::max(kLeast, (static_cast<int>(std::bit_width(count_)) + 1) / 2);
    uint64_t key = hashed(hashed(static_cast<uint64_t>(seed)) ^ static_cast<uint64_t>(epoch));
    for (uint64_t &each : keys_) each = key = hashed(key);
}

uint64_t Shuffle::mixed(uint64_t value) const
{
    const uint64_t mask = (uint64_t{1} << half_) - 1;
    uint64_t left = value >> half_, right = value & mask;
    for (const uint64_t key : keys_)
        left = std::exchange(right, left ^ (hashed(key ^ right) & mask));
    return left << half_ | right;
}

int64_t Shuffle::operator()(int64_t place) const
{
    uint64_t value = mixed(static_cast<uint64_t>(place));
    while (value >= count_) value = mixed(value);
    return static_cast<int64_t>(value);
}

}  // namespace yoke

using namespace yoke;

// ---- Examples of a rank -----------------------------------------------------------------------------------------

yoke_sampler::yoke_sampler(SamplerOptions options) : options_(checked(std::move(options))) {}

yoke_sampler::Pass yoke_sampler::pass_from(int64_t consumed) const
{
    const int64_t left = options_.count - consumed, size = options_.size;
    if (options_.drops_last) return {consumed, consumed + left / size * size};
    if (options_.is_padded) return {consumed, consumed + (left + size - 1) / size * size};
    return {consumed, options_.count};
}

void yoke_sampler::set_epoch(int64_t epoch)
{
    if (epoch < 0)
        fail(YOKE_E_VALUE, "set_epoch: argument 'epoch' is %lld; it must be 0 or more",
             static_cast<long long>(epoch));
    warn_of_epoch_again(epoch);
    const std::lock_guard lock(mutex_);
    if (std::exchange(epoch_, epoch) == epoch) return;
    resumed_.reset();
    pass_ = {};
    place_ = taken_ = 0;
}

// Logs a warning, once after a regroup, if `epoch` does not go forward: the script's own loop counts epochs. After a
// regroup, all ranks go on in the furthest rank's epoch, and such a loop does not know this epoch.
void yoke_sampler::warn_of_epoch_again(int64_t epoch)
{
    int64_t now = 0;
    {
        const std::lock_guard lock(mutex_);
        const bool is_new = epoch > epoch_ || (epoch == epoch_ && !pass_.is_over);
        if (is_new || !std::exchange(is_regrouped_, false)) return;
        now = epoch_;
    }
    log(LogLevel::kWarn,
        "set_epoch: argument 'epoch' is %lld, but after a regroup the ranks went on in epoch %lld, so their epochs may differ; take the epoch from the sampler's state, which is the same on all ranks, not from a counter of the script",
        static_cast<long long>(epoch), static_cast<long long>(now));
}

void yoke_sampler::begin()
{
    const std::lock_guard lock(mutex_);
    pass_ = pass_from(resumed_.value_or(0));
    resumed_.reset();
    pass_.is_begun = true;
    place_ = pass_.from;
    taken_ = 0;
    dealt_.assign(options_.shares.size(), 0);
    if (options_.is_shuffled && options_.count)
        shuffle_.emplace(options_.count, options_.seed, epoch_);
}

// Returns the rank that gets the next example, and counts the example in `dealt`. This is the rank furthest below its
// share, so no rank is ever a whole example behind or ahead.
int32_t yoke_sampler::next_of(std::vector<double> &dealt, int64_t before) const
{
    size_t next = 0;
    const auto lacks = [&](size_t rank) {
        return options_.shares[rank] * static_cast<double>(before + 1) - dealt[rank];
    };
    for (size_t rank = 1; rank < dealt.size(); ++rank)
        if (lacks(rank) > lacks(next)) next = rank;
    ++dealt[next];
    return static_cast<int32_t>(next);
}

bool yoke_sampler::is_own(int64_t place)
{
    const int64_t before = place - pass_.from;
    if (options_.shares.empty()) return before % options_.size == options_.rank;
    return next_of(dealt_, before) == options_.rank;
}

std::optional<int64_t> yoke_sampler::next()
{
    const std::lock_guard lock(mutex_);
    while (place_ < pass_.end) {
        const int64_t place = place_++;
        if (!is_own(place)) continue;
        ++taken_;
        const int64_t in_order = place % options_.count;
        return options_.is_shuffled ? (*shuffle_)(in_order) : in_order;
    }
    pass_.is_over = pass_.is_begun;
    return std::nullopt;
}

int64_t yoke_sampler::length() const
{
    const std::lock_guard lock(mutex_);
    return length_of(pass_from(resumed_.value_or(0)));
}

int64_t yoke_sampler::length_of(const Pass &pass) const
{
    const int64_t all = pass.end - pass.from;
    if (!options_.shares.empty()) return share_of(all);
    return all / options_.size + (all % options_.size > options_.rank);
}

// Returns how many of the first `all` examples of a pass this rank gets.
int64_t yoke_sampler::share_of(int64_t all) const
{
    std::vector<double> dealt(options_.shares.size());
    int64_t count = 0;
    for (int64_t i = 0; i < all; ++i) count += next_of(dealt, i) == options_.rank;
    return count;
}

// Returns how much of the pass all ranks have consumed, if each rank took its share as this rank did. The result is
// between this rank's last example and its next, so this rank loses and repeats no example.
int64_t yoke_sampler::taken_by_all() const
{
    if (options_.shares.empty()) return taken_ * options_.size;
    const int64_t least = place_ - pass_.from;
    int64_t most = least;
    std::vector<double> dealt = dealt_;
    while (pass_.from + most < pass_.end && next_of(dealt, most) != options_.rank) ++most;
    const double share = options_.shares[static_cast<size_t>(options_.rank)];
    const auto of_share = std::llround(static_cast<double>(taken_) / share);
    return std::clamp(static_cast<int64_t>(of_share), least, most);
}

// Returns the state as if all ranks were as far as this rank. Other ranks may get more examples at the order's end.
// So the end counts as consumed only after this rank has used all its examples and asked for another.
SamplerState yoke_sampler::state() const
{
    const std::lock_guard lock(mutex_);
    if (resumed_) return {epoch_, *resumed_};
    if (!pass_.is_begun) return {epoch_, 0};
    const int64_t taken = pass_.from + taken_by_all();
    return {epoch_, pass_.is_over || taken >= pass_.end ? options_.count : taken};
}

void yoke_sampler::load(SamplerState state)
{
    if (state.epoch < 0 || state.consumed < 0 || state.consumed > options_.count)
        fail(
            YOKE_E_VALUE,
            "%s: the state says that %lld examples of epoch %lld are consumed; the data set has %lld",
            kSampler, static_cast<long long>(state.consumed), static_cast<long long>(state.epoch),
            static_cast<long long>(options_.count));
    const std::lock_guard lock(mutex_);
    epoch_ = state.epoch;
    resumed_ = state.consumed;
    pass_ = {};
    place_ = taken_ = 0;
}

void yoke_sampler::regroup(Group &group)
{
    Coalescing::check_closed("regroup");
    const SamplerState now = state();
    const double own =
        options_.shares.empty() ? 0 : options_.shares[static_cast<size_t>(options_.rank)];
    constexpr size_t kEach = 4;
    const std::vector<int64_t> told = gathered(
        group, {std::bit_cast<int64_t>(own), now.epoch, now.consumed, options_.count}, kSampler);
    std::vector<double> shares;
    std::pair<int64_t, int64_t> furthest;
    for (size_t i = 0; i < told.size(); i += kEach) {
        shares.push_back(std::bit_cast<double>(told[i]));
        furthest = std::max(furthest, {told[i + 1], told[i + 2]});
        if (told[i + 3] != told[3])
            fail(
                YOKE_E_VALUE,
                "%s: regroup: the data set has %lld examples on rank 0 and %lld on rank %zu; give all ranks the same data set",
                kSampler, static_cast<long long>(told[3]), static_cast<long long>(told[i + 3]),
                i / kEach);
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.);
    if (sum > 0 && std::ranges::count(shares, 0.))
        fail(
            YOKE_E_VALUE,
            "%s: regroup: %lld of %d ranks have no shares, but the other ranks have; give shares to all ranks",
            kSampler, static_cast<long long>(std::ranges::count(shares, 0.)), group.size());
    for (double &each : shares) each /= sum;
    const std::lock_guard lock(mutex_);
    options_.rank = group.rank();
    options_.size = group.size();
    options_.shares = sum > 0 ? std::move(shares) : std::vector<double>();
    is_regrouped_ = true;
    epoch_ = furthest.first;
    resumed_ = furthest.second;
    pass_ = {};
    place_ = taken_ = 0;
}
