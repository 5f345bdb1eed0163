// What a rank does that has run out of data while others have not.
#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/comm/exchange.h"
#include "core/ops/ops.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <ranges>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kJoin = "join";

}  // namespace

std::shared_ptr<Reducer> Reducer::of(Group &group, const char *call)
{
    std::vector<std::shared_ptr<Reducer>> all = group.reducers().living();
    if (all.empty())
        yoke::fail(
            YOKE_E_STATE,
            "%s: no module's gradients are reduced in this group of %d ranks; wrap it in DistributedDataParallel before, and hold that",
            call, group.size());
    if (all.size() > 1)
        yoke::fail(
            YOKE_E_STATE,
            "%s: the gradients of %zu modules are reduced in this group, and it answers for one; let the others go",
            call, all.size());
    return std::move(all.front());
}

// The others wait for answers of one that finds no module there.
Ref<State> Reducer::end_join_of(Group &group, const Ref<State> &mine)
{
    std::shared_ptr<Reducer> reducer;
    try {
        reducer = of(group, kJoin);
    } catch (const Error &error) {
        group.abort(error.what());
        throw;
    }
    return reducer->end_join(mine);
}

void Reducer::begin_join()
{
    Coalescing::check_closed(kJoin);
    check();
    const std::lock_guard lock(mutex_);
    if (presence_ != Presence::kPlain)
        yoke::fail(YOKE_E_STATE,
                   "%s: this rank is in a join of this group already; leave that one before",
                   kJoin);
    if (!is_sync_)
        yoke::fail(YOKE_E_STATE, "%s: this rank is within no_sync; begin the join outside of it",
                   kJoin);
    presence_ = Presence::kJoined;
    joined_root_ = -1;
    group_->backwards().begin_join();
}

Ref<State> Reducer::end_join(const Ref<State> &mine)
{
    const NoGrad no_grad;
    const NoAutocast no_autocast;
    check();
    leave();
    const bool is_alone = group_->size() == 1;
    while (!is_alone && answer()) {
    }
    {
        const std::lock_guard lock(mutex_);
        presence_ = Presence::kPlain;
    }
    if (is_alone) return mine;
    if (joined_root_ < 0)
        yoke::fail(
            YOKE_E_STATE,
            "%s: all %d ranks were out of data before any of them had a backward; give one of them a batch at least",
            kJoin, group_->size());
    return state_of_last(mine);
}

// With them this rank is as far as that one.
Ref<State> Reducer::state_of_last(const Ref<State> &mine)
try {
    take_values(joined_root_);
    take_gradients(joined_root_);
    Ref<State> told =
        state_from(*group_, joined_root_, mine.present() ? mine : State::make(), kJoin);
    group_->backwards().end_join();
    return told;
} catch (const Error &error) {
    group_->abort(format("its %s failed: ", kJoin) + error.what());
    throw;
}

// Mostly none, as steps end with zero_grad; what has been added up for a step behind the join is alike on all.
void Reducer::take_gradients(int32_t root)
{
    std::vector<int64_t> has(params_.size());
    for (size_t i = 0; i < has.size(); ++i) has[i] = leaf_of(i).grad().present();
    has = from_rank(*group_, root, has, kJoin);
    std::vector<Named> told;
    for (size_t i = 0; i < has.size(); ++i) {
        LeafNode &leaf = leaf_of(i);
        if (!has[i])
            leaf.set_grad(nullptr);
        else if (!leaf.grad().present())
            leaf.set_grad(alias(*view_of(i)));
        if (has[i]) told.push_back({params_[i].name, leaf.grad()});
    }
    send(told, root, Writes::kAll);
}

// The others wait for a rank that cannot leave.
void Reducer::leave()
{
    const std::lock_guard lock(mutex_);
    if (presence_ != Presence::kJoined)
        yoke::fail(YOKE_E_STATE, "%s: this rank is in no join of this group; begin one before",
                   kJoin);
    presence_ = Presence::kOut;
    const auto has_gradient = [this](size_t i) { return leaf_of(i).grad().present(); };
    const std::ranges::iota_view all(size_t{0}, params_.size());
    if (is_sync_ && !(has_unsynced_ && std::ranges::any_of(all, has_gradient))) return;
    const std::string problem = format(
        "%s: this rank leaves with gradients that no_sync has added up and no backward has reduced; its last backward must be outside of no_sync",
        kJoin);
    group_->abort(problem);
    throw Error(YOKE_E_STATE, problem);
}

bool Reducer::answer()
{
    claim(0);
    try {
        const bool goes_on = answer_step();
        release(goes_on ? end_of_step() : Backwards::End::kAlone);
        return goes_on;
    } catch (...) {
        fail();
        throw;
    }
}

bool Reducer::answer_step()
{
    open_answer();
    shared();
    if (step_.root < 0) return false;
    for (const Bucket &bucket : buckets_) ops::fill_(*bucket.memory, 0.0);
    launch_full();
    finish_step();
    return true;
}

// Nothing comes here, and all has come.
void Reducer::open_answer()
{
    step_.is_reached.assign(params_.size(), false);
    step_.missing.assign(buckets_.size(), 0);
    share();
}

// In a join are all ranks, or none; else who is out would wait for others that do not know of it.
void Reducer::check_presences(const std::vector<double> &shared) const
{
    const auto first = shared.begin() + std::ssize(params_) + 1;
    const auto is_plain = [](double each) { return each == static_cast<double>(Presence::kPlain); };
    const auto plain = std::find_if(first, shared.end(), is_plain);
    const auto joined = std::find_if_not(first, shared.end(), is_plain);
    if (plain == shared.end() || joined == shared.end()) return;
    const auto shown = [&](auto which) {
        return describe(group_->ranks()[static_cast<size_t>(which - first)]);
    };
    yoke::fail(
        YOKE_E_STATE,
        "%s: %s %s join, and %s is in none; the loop over the batches of each rank must be within one, or that of none",
        step_.call(), shown(joined).c_str(),
        *joined == static_cast<double>(Presence::kOut) ? "has come to the end of its" : "is in a",
        shown(plain).c_str());
}

}  // namespace yoke
