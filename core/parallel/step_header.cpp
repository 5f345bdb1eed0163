// Several modules of one group in one backward: the order of their calls is that of their numbers, whatever the graph
// is.
#include "core/base/error.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace yoke {

// The one that was made last is mostly used last, so its gradients come first.
void Reducer::open(std::span<LeafWatcher *const> all)
{
    if (!step_.is_synced) return;
    find_neighbours(all);
    share();
    if (step_.after) return;
    Reducer *first = this;
    for (Reducer *each = this; each; each = each->step_.before) {
        each->store_unreached();
        first = each;
    }
    first->launch_full();
}

void Reducer::find_neighbours(std::span<LeafWatcher *const> all)
{
    bool is_behind = false;
    for (LeafWatcher *each : all) {
        auto *const other = dynamic_cast<Reducer *>(each);
        if (other == this) is_behind = true;
        if (!other || other == this || other->group_.get() != group_.get() ||
            !other->step_.is_synced)
            continue;
        (is_behind ? step_.after : step_.before) = other;
        if (is_behind) return;
    }
}

// All small all_reduces come before them, and those of one module before those of the next.
void Reducer::launch_full()
{
    if (step_.before && !step_.before->has_begun_all()) return;
    while (step_.begun < buckets_.size() && !step_.missing[step_.begun]) {
        const size_t next = step_.begun++;
        compression_->begin(buckets_[next], next, step_.begun == buckets_.size());
    }
    if (step_.after && has_begun_all()) step_.after->launch_full();
}

bool Reducer::has_begun_all() const
{
    return step_.begun == buckets_.size();
}

namespace {

constexpr int64_t kPresences = 4;        // room for as many in a place
constexpr int64_t kNumbers = 1LL << 25;  // and for two numbers of modules: a double holds it

// Where a rank is in one backward: a module, and that which comes behind it.
struct Spot {
    int64_t module, next;
    bool operator==(const Spot &) const = default;
};

std::string describe_next(const Spot &spot)
{
    return spot.next ? format(" and then module %lld", static_cast<long long>(spot.next))
                     : " and then no other";
}

}  // namespace

double Reducer::where() const
{
    const int64_t next = step_.after ? step_.after->number_ : 0;
    return static_cast<double>((next * kNumbers + number_) * kPresences +
                               static_cast<int64_t>(step_.presence));
}

// Of one module on all ranks, and of one behind it. What is left in each place is where that rank is.
void Reducer::take_numbers(std::vector<double> &shared) const
{
    std::vector<Spot> spots;
    for (size_t i = params_.size() + 1; i < shared.size(); ++i) {
        const auto told = static_cast<int64_t>(shared[i]);
        spots.push_back({told / kPresences % kNumbers, told / kPresences / kNumbers});
        shared[i] = static_cast<double>(told % kPresences);
    }
    const auto other = std::ranges::adjacent_find(spots, std::not_equal_to());
    if (other == spots.end()) return;
    const Spot &first = spots[0], &second = other[1];
    const bool is_same = first.module == second.module;
    const auto rank = static_cast<size_t>(other - spots.begin()) + 1;
    yoke::fail(
        YOKE_E_STATE,
        "%s: %s goes back through module %lld of this group%s, and %s through module %lld%s, as DistributedDataParallel has wrapped them; one backward goes through the same modules on all ranks, and all have the backwards of several modules in one order",
        step_.call(), describe(group_->ranks()[0]).c_str(), static_cast<long long>(first.module),
        is_same ? describe_next(first).c_str() : "", describe(group_->ranks()[rank]).c_str(),
        static_cast<long long>(second.module), is_same ? describe_next(second).c_str() : "");
}

}  // namespace yoke
