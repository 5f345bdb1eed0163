// Going on in another group, such as that of the ranks which still live.
#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/coalesce.h"
#include "core/comm/exchange.h"
#include "core/ops/ops.h"
#include "core/parallel/reducer.h"

#include <algorithm>
#include <map>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kRegroup = "regroup";

Ref<State> list_of(const std::vector<Reducer::Named> &tensors)
{
    const Ref<State> list = State::make(StateList());
    for (const Reducer::Named &each : tensors) list->append(State::make(each.tensor), kRegroup);
    return list;
}

void copy_into(const std::vector<Reducer::Named> &tensors, const State &list)
{
    const std::vector<Ref<State>> &items = list.get_if<StateList>()->items;
    for (size_t i = 0; i < tensors.size(); ++i)
        if (const Tensor &told = *items[i]->get_if<Tensor>(); told.get() != tensors[i].tensor.get())
            ops::copy_(*tensors[i].tensor, *told);
}

}  // namespace

// Of ranks that have stopped one step apart. Who has begun nothing since its last backward may be amid the step of its
// optimizer, so one that has failed in the same backward, and has all of the steps before, goes first. It shows in the
// parameters who has taken all of that step, who none of it, and who is amid it (param_writes.h), who goes last. A
// call, as of a loss that is shown, may come before that step or behind it; but whoever has made more of them was there
// later. It is chosen once for all modules of a group: an optimizer may step those of several.
Reducer::Position Reducer::position() const
{
    return group_->backwards().leave([&] {
        ParamWrites::Since since;
        for (const std::shared_ptr<Reducer> &each : group_->reducers().living()) {
            const std::lock_guard lock(each->mutex_);
            each->writes_.add_to(since,
                                 [&](size_t i) { return version_of(each->params_[i].tensor); });
        }
        Position at;
        at.writes = since.count();
        at.progress = since.count() == 0 ? Backwards::kNone
                      : since.is_whole() ? Backwards::kAll
                                         : Backwards::kSome;
        return at;
    });
}

// The backward has ended and counts, whatever there is no memory for here: then this one looks at its own.
void Reducer::look_at_all_parameters() noexcept
try {
    for (const std::shared_ptr<Reducer> &each : group_->reducers().living())
        each->look_at_parameters();
} catch (const std::exception &) {
    look_at_parameters();
}

// Alone in its group a module may be gone back through by several threads at once.
void Reducer::look_at_parameters() noexcept
{
    const std::lock_guard lock(mutex_);
    writes_.end_backward(params_.size(), [&](size_t i) {
        return ParamWrites::Param{version_of(params_[i].tensor), leaf_of(i).grad().present()};
    });
}

// Of those that are furthest among the ranks of their former group the one that has made most steps; of equals the
// first.
int32_t Reducer::furthest(Group &group, uint64_t former, Position mine)
{
    constexpr size_t kEach = 6;
    const std::vector<int64_t> told = gathered(group,
                                               {static_cast<int64_t>(former), mine.steps,
                                                mine.calls, mine.progress, mine.writes, mine.made},
                                               kRegroup);
    using Far = std::pair<Position, int64_t>;  // of a rank, and the negative of that
    std::map<int64_t, Far> first;              // by former group
    for (size_t i = 0; i < told.size(); i += kEach) {
        const Position at{told[i + 1], told[i + 2], told[i + 3], told[i + 4], told[i + 5]};
        const Far one(at, -static_cast<int64_t>(i / kEach));
        Far &most = first.emplace(told[i], one).first->second;
        most = std::max(most, one);
    }
    const auto most = std::ranges::max_element(
        first, {}, [](const auto &each) { return std::pair(each.second.first.made, each.second); });
    return static_cast<int32_t>(-most->second.second);
}

// It keeps what its compression goes on with; who calls it again finds that. Gradients may be the script's own memory,
// which calls into it as it goes, so they go when nothing is locked.
void Reducer::retire()
{
    {
        const std::lock_guard none_begins(state_mutex_);
        check_resting(kRegroup);
        compression_->lay_out({}, names());
        const std::lock_guard lock(mutex_);
        is_over_ = is_retired_ = true;
    }
    detach();
    buckets_.clear();
    for (size_t i = 0; i < params_.size(); ++i) leaf_of(i).set_grad(nullptr);
}

// One that was alone in its group, or whose group has failed, had left its leaves to another one. The group is well.
void Reducer::check_unwatched_on_all() const
try {
    check_unwatched(kRegroup);
} catch (const Error &error) {
    tell_refused(*group_, error);
    throw UnlikeModels(error.status(), error.what());
}

Reducer::Regrouped Reducer::regroup(const Ref<Group> &group, const Ref<State> &mine)
{
    const NoGrad no_grad;
    try {
        Coalescing::check_closed(kRegroup);
        retire();
        const Position at = position();  // before the group, which may be the same, is called
        const std::shared_ptr<Reducer> made(
            new Reducer(group, all_params_, buffers_, options_, &leaves_));
        made->check_unwatched_on_all();
        if (group->size() > 1) made->compare_models(this);
        const int32_t from = furthest(*group, group_->number(), at);
        warn_of_losses(*group, from);
        Regrouped there = made->go_on_from(*this, state_from(*group, from, values(mine), kRegroup));
        if (group.get() != group_.get())  // else it has left nobody behind
            group_->backwards().note_gone_on_in(group->number());
        return there;
    } catch (const UnlikeModels &) {  // the group is well, and may be given again
        throw;
    } catch (...) {
        tell_raised(*group, kRegroup);
        throw;
    }
}

void Reducer::warn_of_losses(const Group &group, int32_t from) const
{
    if (!group_->backwards().has_gone_on_in(group.number()))
        log(LogLevel::kWarn,
            "regroup: other modules of this one's former group have gone on in a group that has ended since, and their state may be another rank's; load all of them from one checkpoint, or compare them");
    if (const int64_t answered = group_->backwards().answered();
        group.rank() == from && answered > 0)
        log(LogLevel::kWarn,
            "regroup: all go on from this rank, which was out of data in a join; the steps of the others since, of %lld backwards, are lost",
            static_cast<long long>(answered));
}

Reducer::Regrouped Reducer::go_on_from(const Reducer &former, const Ref<State> &told)
try {
    anchor_ = former.anchor_;  // of what was recorded before
    install();
    take_over(former, *told);
    number_ = group_->reducers().add(weak_from_this());
    first_number_ = group_.get() == former.group_.get() ? former.first_number_ : number_;
    group_->backwards().note_params(params_.size());
    return {shared_from_this(), Ref<State>::share(&told->at("mine", kRegroup))};
} catch (...) {
    detach();
    throw;
}

Ref<State> Reducer::values(const Ref<State> &mine) const
{
    const Ref<State> all = State::make(StateDict());
    all->put("done", State::make(group_->backwards().done()), kRegroup);
    all->put("params", list_of(all_params_), kRegroup);
    all->put("buffers", list_of(buffers_), kRegroup);
    {
        const std::lock_guard lock(state_mutex_);
        all->put("compression", state_of(compression_->state().common()), kRegroup);
    }
    all->put("mine", mine.present() ? mine : State::make(), kRegroup);
    return all;
}

// What each rank's compression lacked stays its own.
void Reducer::take_over(const Reducer &before, State &values)
{
    copy_into(all_params_, values.at("params", kRegroup));
    copy_into(buffers_, values.at("buffers", kRegroup));
    group_->backwards().go_on_from(*values.at("done", kRegroup).get_if<int64_t>());
    weight_ = before.weight_;
    writes_.go_on_from(before.writes_);
    is_sync_ = before.is_sync();
    CompressionState state = read_compression_state(values.at("compression", kRegroup), kRegroup);
    {
        const std::lock_guard lock(before.state_mutex_);
        state.tensors.merge(before.compression_->state().tensors);
    }
    compression_->load(state);
}

}  // namespace yoke
