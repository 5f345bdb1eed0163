// One backward of a reducer.
#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/comm/coalesce.h"
#include "core/comm/numbers.h"
#include "core/ops/ops.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kBackward = "backward";

}  // namespace

void Reducer::claim(uint64_t oldest)
{
    const std::lock_guard first(state_mutex_);
    const std::lock_guard lock(mutex_);
    if (is_walking_)
        yoke::fail(
            YOKE_E_STATE,
            "backward: another backward over the same parameters is under way; ranks reduce one after the other, so call them one after the other");
    is_walking_ = true;
    step_ = Step();
    step_.is_alone = is_over_ || group_->was_told_before(oldest);
    step_.is_synced = is_sync_ && !step_.is_alone;
    step_.presence = presence_;
    step_.weight = presence_ == Presence::kOut ? 0 : weight_;
    group_->backwards().begin(step_.is_synced);
}

Backwards::End Reducer::end_of_step() const noexcept
{
    return !step_.is_synced                   ? Backwards::End::kAlone
           : step_.presence == Presence::kOut ? Backwards::End::kAnswered
                                              : Backwards::End::kReduced;
}

void Reducer::release(Backwards::End how) noexcept
{
    Step ended;
    bool was_walking = false;
    {
        const std::lock_guard lock(mutex_);
        std::swap(ended, step_);
        if (ended.before) ended.before->step_.after = nullptr;
        if (ended.after) ended.after->step_.before = nullptr;
        was_walking = std::exchange(is_walking_, false);
    }
    if (was_walking && group_->backwards().end(how)) look_at_all_parameters();
}

void Reducer::check_params() const
{
    for (const Named &each : params_)
        if (each.tensor->frozen)
            yoke::fail(
                YOKE_E_STATE,
                "backward: the parameter '%s' was frozen after its gradients were given to %d ranks to reduce; wrap the module again",
                each.name.c_str(), group_->size());
}

// Raises for a parameter that has moved: a bucket's view of another dtype or device cannot be its gradient.
void Reducer::check_places() const
{
    for (size_t i = 0; i < params_.size(); ++i) {
        const yoke_tensor &param = *params_[i].tensor, &view = *view_of(i);
        if (param.dtype != view.dtype || param.device != view.device)
            yoke::fail(
                YOKE_E_STATE,
                "backward: the parameter '%s' is %s by now, but its gradients are reduced as %s; move or cast the module before it is wrapped, or wrap it again",
                params_[i].name.c_str(), describe(param).c_str(), describe(view).c_str());
    }
}

void Reducer::begin(const std::vector<Ref<LeafNode>> &reached, uint64_t oldest)
{
    claim(oldest);
    try {
        if (!step_.is_alone) {
            check_places();
            part_gradients();
        }
        if (!step_.is_synced) return;
        Coalescing::check_closed(kBackward);
        check_params();
        open_step(reached);
    } catch (...) {
        fail();
        throw;
    }
}

// What the walk does not lead to counts as come.
void Reducer::open_step(const std::vector<Ref<LeafNode>> &reached)
{
    step_.is_reached.assign(params_.size(), false);
    for (const Ref<LeafNode> &leaf : reached)
        if (leaf.get() != anchor_.get()) step_.is_reached[numbers_.at(leaf.get())] = true;
    for (const Bucket &bucket : buckets_) step_.missing.push_back(bucket.params.size());
    for (size_t i = 0; i < params_.size(); ++i) {
        if (step_.is_reached[i]) continue;
        --step_.missing[places_[i].bucket];
        step_.is_reached[i] = leaf_of(i).grad().present();
        step_.unreached.push_back(i);
    }
}

// With what no_sync has left there, or 0.
void Reducer::store_unreached()
{
    for (const size_t i : step_.unreached)
        if (step_.is_reached[i])
            store(leaf_of(i), i, nullptr);
        else
            ops::fill_(*view_of(i), 0.0);
}

// Which parameters this rank uses, its weight, and, in places of each rank's own, where it is and in which module, and
// its weight again. It is as long for each module of the group, so that unlike ones are told.
void Reducer::share()
{
    const auto size = static_cast<size_t>(group_->size());
    std::vector<double> mine(step_.is_reached.begin(), step_.is_reached.end());
    mine.resize(std::max(mine.size(), group_->backwards().most_params()));
    mine.push_back(step_.weight);
    const size_t place = mine.size() + static_cast<size_t>(group_->rank());
    mine.resize(mine.size() + 2 * size);
    mine[place] = where();
    mine[place + size] = step_.weight;
    const Tensor &shared = step_.shared = tensor_of(mine, kBackward);
    step_.sharing = group_->run({YOKE_COMM_ALL_REDUCE, YOKE_REDUCE_SUM, -1, shared, shared}, true);
}

// The sums over all ranks, for which the first gradient waits.
const std::vector<double> &Reducer::shared()
{
    if (!step_.sums.empty()) return step_.sums;
    if (step_.before) step_.before->shared();  // what the ranks have unlike shows there first
    const Interruptible waits(kBackward);
    step_.sharing->wait(-1);
    std::vector<double> sums = numbers_of<double>(step_.shared, kBackward);
    take_room(sums);
    take_weights(sums);
    take_numbers(sums);
    check_presences(sums);
    for (size_t rank = sums.size(); rank-- > params_.size() + 1;)
        if (sums[rank] != static_cast<double>(Presence::kOut))
            step_.root = static_cast<int32_t>(rank - params_.size() - 1);
    return step_.sums = std::move(sums);
}

// What makes the gradient of a rank of that weight its part of the mean: before it is compressed, so that what a
// compression keeps, and what a 16-bit float holds, does not hang on the unit of weights.
double Reducer::factor(double weight)
{
    const double all = shared()[params_.size()];
    if (!std::isfinite(all))
        yoke::fail(
            YOKE_E_VALUE,
            "%s: the weights of all ranks make %g together, of this one %g; weigh all by smaller numbers",
            kBackward, all, step_.weight);
    return step_.is_even ? 1 : weight / all * group_->size();
}

// The factor of the heaviest rank, up to a power of 2, where float16 passes: by as much less passes, and the mean is
// made larger by it, so that nothing on the way to a mean that a float16 holds is larger than gradients are.
double Reducer::room_above(const Bucket &bucket)
{
    if (compression_->passes(bucket.memory->dtype) != YOKE_F16) return 1;
    return std::exp2(std::ceil(std::log2(factor(step_.heaviest))));
}

// Behind this module's parameters, for those of a larger one.
void Reducer::take_room(std::vector<double> &shared) const
{
    const size_t length = params_.size() + 1 + 2 * static_cast<size_t>(group_->size());
    const auto own = shared.begin() + std::ssize(params_);
    shared.erase(own, own + std::ssize(shared) - static_cast<ptrdiff_t>(length));
}

// Off the end.
void Reducer::take_weights(std::vector<double> &shared)
{
    const auto size = static_cast<size_t>(group_->size());
    const auto [least, most] = std::ranges::minmax(std::span(shared).last(size));
    step_.heaviest = most;
    step_.is_even = least == most;
    shared.resize(shared.size() - size);
}

// Into the view, beside what the leaf held; the leaf then holds the view.
void Reducer::store(LeafNode &leaf, size_t param, Tensor gradient)
{
    const Tensor &view = view_of(param);
    const bool is_there = holds_view(leaf, view);
    if (!is_there) {
        const Tensor held = leaf.grad();
        if (held.present()) {
            ops::copy_(*view, *held);
            if (gradient.present()) ops::add_(*view, *gradient);
        } else if (gradient.present()) {
            ops::copy_(*view, *gradient);
        } else {
            ops::fill_(*view, 0.0);
        }
        leaf.set_grad(alias(*view));
    } else if (gradient.present()) {
        ops::add_(*view, *gradient);
    }
    if (!step_.is_synced) return;
    const double part = factor(step_.weight) / room_above(buckets_[places_[param].bucket]);
    if (part != 1) ops::mul_(*view, part);
}

void Reducer::arrive(LeafNode &leaf, Tensor gradient)
{
    if (&leaf == anchor_.get()) return;
    if (step_.is_alone) return leaf.add(std::move(gradient));
    const size_t param = numbers_.at(&leaf);
    if (!step_.is_synced && !gradient.present()) return;
    store(leaf, param, std::move(gradient));
    if (!step_.is_synced) {
        has_unsynced_ = true;
        return;
    }
    step_.order.push_back(param);
    if (!--step_.missing[places_[param].bucket]) launch_full();
}

void Reducer::end()
{
    try {
        if (step_.is_synced) finish_step();
    } catch (...) {
        fail();
        throw;
    }
    release(end_of_step());
}

void Reducer::finish_step()
{
    const Interruptible waits(kBackward);
    shared();
    for (size_t i = 0; i < buckets_.size(); ++i) compression_->go_on(buckets_[i], i);
    for (size_t i = 0; i < buckets_.size(); ++i) {
        compression_->end(buckets_[i], i);
        for (size_t k = 0; k < buckets_[i].params.size(); ++k)
            if (!(shared()[buckets_[i].params[k]] > 0)) compression_->keep(buckets_[i], i, k);
        if (const double room = room_above(buckets_[i]); room != 1)
            ops::mul_(*buckets_[i].memory, room);
        if (step_.presence != Presence::kOut) settle(i);  // who is out gets its at the join's end
    }
    if (!std::exchange(is_rebuilt_, true)) rebuild();
    send(buffers_, step_.root, Writes::kUnlike);
    const std::lock_guard lock(mutex_);
    has_unsynced_ = false;
    if (step_.presence != Presence::kPlain) joined_root_ = step_.root;
}

void Reducer::settle(size_t bucket)
{
    Bucket &full = buckets_[bucket];
    const std::vector<double> &used = shared();
    for (size_t k = 0; k < full.params.size(); ++k) {
        LeafNode &leaf = leaf_of(full.params[k]);
        if (used[full.params[k]] > 0 && !holds_view(leaf, full.views[k]))
            leaf.set_grad(alias(*full.views[k]));
    }
}

// In the order in which the root's gradients came, rank 0's if nobody is out; those that did not come are behind the
// others.
void Reducer::rebuild()
{
    std::vector<int64_t> order(step_.order.begin(), step_.order.end());
    std::vector<bool> has_come(params_.size());
    for (const size_t each : step_.order) has_come[each] = true;
    for (size_t i = params_.size(); i-- > 0;)
        if (!has_come[i]) order.push_back(static_cast<int64_t>(i));
    const Tensor told = tensor_of(order, kBackward);
    group_->run({YOKE_COMM_BROADCAST, -1, step_.root, told, told}, false);
    order = numbers_of<int64_t>(told, kBackward);
    const BucketPlan plan =
        plan_buckets(tensors(), std::vector<size_t>(order.begin(), order.end()), options_.sizes);
    const bool is_same = std::ranges::equal(
        plan, buckets_, [](const auto &a, const Bucket &b) { return a == b.params; });
    if (!is_same) lay_out(plan);
}

// Who waits for this rank is told what is being handled.
void Reducer::tell_raised(Group &group, const char *call) noexcept
{
    if (!group.is_here()) return;
    try {
        throw;
    } catch (const std::exception &error) {
        group.abort(format("its %s failed: ", call) + error.what());
    } catch (...) {
        group.abort(format("its %s failed", call));
    }
}

// One that another thread has under way goes on.
void Reducer::refuse() noexcept
{
    {
        const std::lock_guard lock(mutex_);
        if (is_walking_ || !is_sync_ || is_over_) return;
        is_over_ = true;
    }
    tell_raised(*group_, kBackward);
}

// The other ranks wait for this one's buckets.
void Reducer::fail() noexcept
{
    if (step_.is_synced) {
        tell_raised(*group_, step_.call());
        compression_->abandon();
        const std::lock_guard lock(mutex_);
        is_over_ = true;
    }
    release(step_.is_synced ? Backwards::End::kFailed : Backwards::End::kAlone);
}

}  // namespace yoke
