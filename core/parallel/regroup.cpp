#include "core/parallel/regroup.h"

#include "core/base/error.h"
#include "core/base/log.h"
#include "core/comm/coalesce.h"
#include "core/comm/exchange.h"
#include "core/ops/ops.h"
#include "core/parallel/model_comparison.h"
#include "core/parallel/reducer.h"
#include "core/parallel/tell_raised.h"

#include <algorithm>
#include <map>
#include <utility>

namespace yoke {

namespace {

constexpr const char *kRegroup = "regroup";

Ref<State> list_of(const std::vector<ModuleTensor> &tensors)
{
    const Ref<State> list = State::make(StateList());
    for (const ModuleTensor &each : tensors) list->append(State::make(each.tensor), kRegroup);
    return list;
}

void copy_into(const std::vector<ModuleTensor> &tensors, const State &list)
{
    const std::vector<Ref<State>> &items = list.get_if<StateList>()->items;
    for (size_t i = 0; i < tensors.size(); ++i)
        if (const Tensor &told = *items[i]->get_if<Tensor>(); told.get() != tensors[i].tensor.get())
            ops::copy_(*tensors[i].tensor, *told);
}

using Position = Backwards::Position;

// Refusal raised alike on all ranks: no rank has parameters to go on from. The group stays as it is.
class NotReduced final : public Error {
public:
    using Error::Error;
};

// Returns whether this rank's parameters come from completed reductions, or were loaded by the script since. Waits
// for calls on devices, unless the group has failed. A backward returns before the device has reduced, and the device
// queues an optimizer's step behind the calls. If the calls are then aborted, the step still runs, with half-reduced
// gradients.
bool are_reduced(Group &group, const std::vector<std::shared_ptr<Reducer>> &modules)
{
    const auto is_over = [&group] { return group.is_failed(); };
    return std::ranges::all_of(modules, [&](const std::shared_ptr<Reducer> &each) {
        const ParamWrites &writes = each->writes();
        return writes.are_loaded() || group.flights().have_ended(writes.calls_behind(), is_over);
    });
}

// Returns how far this rank is, when ranks have stopped a step apart. The position is chosen once for all modules of
// a group: an optimizer may step the parameters of several modules.
//
// A rank without a call since its last backward may be amid its optimizer's step. So a rank that failed in this same
// backward, and has finished all earlier steps, goes first. The parameters show whether a rank has taken all, some or
// no part of the step (param_writes.h). A rank with some part goes last. A call of the group, such as for a shown
// loss, may come before or behind the step. But a rank with more calls stopped later. A rank whose parameters are not
// reduced goes behind all.
Position position(Group &group)
{
    return group.backwards().leave([&] {
        const std::vector<std::shared_ptr<Reducer>> modules = group.reducers().living();
        ParamWrites::Since since;
        for (const std::shared_ptr<Reducer> &each : modules) each->writes().add_to(since);
        Position at;
        at.writes = since.count();
        at.progress = !are_reduced(group, modules) ? Backwards::kUnreduced
                      : since.count() == 0         ? Backwards::kNone
                      : since.is_whole()           ? Backwards::kAll
                                                   : Backwards::kSome;
        return at;
    });
}

struct Furthest {
    int32_t rank;
    bool is_reduced;
};

// Returns the rank to go on from, after an exchange of all ranks' positions. First, each former group gives its
// furthest rank. Of these, the rank with most steps is chosen; if equal, the first. is_reduced is false if no rank of
// this former group has reduced parameters.
Furthest furthest(Group &group, uint64_t former, Position mine)
{
    constexpr size_t kEach = 6;
    const std::vector<int64_t> told = gathered(group,
                                               {static_cast<int64_t>(former), mine.steps,
                                                mine.calls, mine.progress, mine.writes, mine.made},
                                               kRegroup);
    using Far = std::pair<Position, int64_t>;  // position of a rank, and minus the rank
    std::map<int64_t, Far> first;              // by former group
    for (size_t i = 0; i < told.size(); i += kEach) {
        const Position at{told[i + 1], told[i + 2], told[i + 3], told[i + 4], told[i + 5]};
        const Far one(at, -static_cast<int64_t>(i / kEach));
        Far &most = first.emplace(told[i], one).first->second;
        most = std::max(most, one);
    }
    const auto most = std::ranges::max_element(
        first, {}, [](const auto &each) { return std::pair(each.second.first.made, each.second); });
    return {static_cast<int32_t>(-most->second.second),
            most->second.first.progress != Backwards::kUnreduced};
}

std::string told_why(Group &group)
try {
    group.check_running(kRegroup);
    return "";
} catch (const Error &error) {
    return error.what();
}

// Raises NotReduced on all ranks: there are no parameters to go on from. Notes the parameters of each rank. If the
// script later writes all of them, they count as loaded.
[[noreturn]] void refuse(Group &group, Group &former, int32_t from)
{
    const Ref<State> why = state_from(group, from, State::make(told_why(former)), kRegroup);
    note_told_of_all(former, true);
    former.backwards().forget_left();
    throw NotReduced(
        YOKE_E_STATE,
        format(
            "%s: all ranks that are alive changed parameters after reductions that their devices did not finish (%s); load the last saved state of the module, optimizer and so on on all ranks, and call regroup again with this group",
            kRegroup, why->get_if<std::string>()->c_str()));
}

// Raises on all ranks, as UnlikeModels, the error of this rank's WatchedLeaves::check_free. A former reducer alone in
// its group, or in a failed group, may have left its leaves to another reducer. The new group stays as it is.
void check_free_on_all(const Reducer &made)
try {
    made.leaves().check_free(kRegroup);
} catch (const Error &error) {
    tell_refused(made.group(), error);
    throw UnlikeModels(error.status(), error.what());
}

void warn_of_losses(const Reducer &former, const Group &group, int32_t from)
{
    const Backwards &backwards = former.group().backwards();
    if (!backwards.has_gone_on_in(group.number()))
        log(LogLevel::kWarn,
            "regroup: other modules of the former group went on in a group that has since ended, so their state may come from another rank; load all modules from one checkpoint, or compare them");
    if (const int64_t answered = backwards.answered(); group.rank() == from && answered > 0)
        log(LogLevel::kWarn,
            "regroup: all ranks go on from this rank, which was out of data in a join; the later steps of the other ranks, %lld backward passes, are lost",
            static_cast<long long>(answered));
}

// Returns this rank's steps, parameters, buffers, compression state and `mine` as a tree, in case the other ranks go
// on from this rank.
Ref<State> values_of(const Reducer &former, const Ref<State> &mine)
{
    const Ref<State> all = State::make(StateDict());
    all->put("done", State::make(former.group().backwards().done()), kRegroup);
    all->put("params", list_of(former.module().all_params()), kRegroup);
    all->put("buffers", list_of(former.module().buffers()), kRegroup);
    all->put("compression", state_of(former.compression_state().common()), kRegroup);
    all->put("mine", mine.present() ? mine : State::make(), kRegroup);
    return all;
}

Regrouped go_on_from(const std::shared_ptr<Reducer> &made, const Reducer &former, State &told)
try {
    made->take_leaves(&former);
    copy_into(made->module().all_params(), told.at("params", kRegroup));
    copy_into(made->module().buffers(), told.at("buffers", kRegroup));
    made->group().backwards().go_on_from(*told.at("done", kRegroup).get_if<int64_t>());
    made->go_on_from(former, read_compression_state(told.at("compression", kRegroup), kRegroup));
    made->enter_group(&former);
    return {made, Ref<State>::share(&told.at("mine", kRegroup))};
} catch (...) {
    made->detach();
    throw;
}

}  // namespace

Regrouped regroup(Reducer &former, const Ref<Group> &group, const Ref<State> &mine)
{
    const NoGrad no_grad;
    try {
        Coalescing::check_closed(kRegroup);
        former.retire();
        const Position at =
            position(former.group());  // before calls of `group`, which may be the same group
        const std::shared_ptr<Reducer> made = former.make_next(group);
        check_free_on_all(*made);
        if (group->size() > 1) made->compare_models(&former);
        const auto [from, is_reduced] = furthest(*group, former.group().number(), at);
        if (!is_reduced) refuse(*group, former.group(), from);
        warn_of_losses(former, *group, from);
        Regrouped there =
            go_on_from(made, former, *state_from(*group, from, values_of(former, mine), kRegroup));
        if (group.get() != &former.group())  // in the same group no rank is left behind
            former.group().backwards().note_gone_on_in(group->number());
        return there;
    } catch (const NotReduced &) {  // the group is usable, and may be given again
        throw;
    } catch (const UnlikeModels &) {  // the group stays usable here too
        throw;
    } catch (...) {
        tell_raised(*group, kRegroup);
        throw;
    }
}

}  // namespace yoke
