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

// A refusal that all ranks raise alike: no rank has parameters to go on from. The group stays as it is.
class NotReduced final : public Error {
public:
    using Error::Error;
};

// Returns whether the calls on devices have ended behind which this rank's parameters were written, or a script has
// loaded others since. A backward returns before the device has reduced, and an optimizer's step is queued behind it.
// If the calls are aborted then, the step is made all the same, of gradients that are half reduced.
bool are_reduced(Group &group, const std::vector<std::shared_ptr<Reducer>> &modules)
{
    const auto is_over = [&group] { return group.is_failed(); };
    return std::ranges::all_of(modules, [&](const std::shared_ptr<Reducer> &each) {
        const ParamWrites &writes = each->writes();
        return writes.are_loaded() || group.flights().have_ended(writes.calls_behind(), is_over);
    });
}

// Returns how far this rank is, when ranks have stopped one step apart. It is chosen once for all modules of a group:
// an optimizer may step the parameters of several.
//
// A rank that has begun nothing since its last backward may be amid the step of its optimizer. So a rank that has
// failed in the same backward, and has all of the steps before, goes first. The parameters show who has taken all of
// that step, who none of it, and who is amid it (param_writes.h), who goes last. A call, as of a loss that is shown,
// may come before that step or behind it; but whoever has made more calls was there later. A rank whose parameters are
// not reduced goes behind all.
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

// Returns the rank to go on from: among ranks that are furthest of their former group the rank that has made most
// steps; of equals the first. Its parameters are not reduced if none of its former group are.
Furthest furthest(Group &group, uint64_t former, Position mine)
{
    constexpr size_t kEach = 6;
    const std::vector<int64_t> told = gathered(group,
                                               {static_cast<int64_t>(former), mine.steps,
                                                mine.calls, mine.progress, mine.writes, mine.made},
                                               kRegroup);
    using Far = std::pair<Position, int64_t>;  // of a rank, and the rank's negative
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

// Raises on all ranks that there are no parameters to go on from. Notes the parameters of each rank: if the script then
// writes all of them, it has loaded others.
[[noreturn]] void refuse(Group &group, Group &former, int32_t from)
{
    const Ref<State> why = state_from(group, from, State::make(told_why(former)), kRegroup);
    note_told_of_all(former, true);
    former.backwards().forget_left();
    throw NotReduced(
        YOKE_E_STATE,
        format(
            "%s: all living ranks of the former group have written their parameters behind reductions that their devices did not end (%s); load the last saved state of the module, and of what goes with it, on all of them, and call regroup again with this group",
            kRegroup, why->get_if<std::string>()->c_str()));
}

// Raises on all ranks what WatchedLeaves::check_free raises on this rank. A former reducer that was alone in its group,
// or whose group has failed, had left its leaves to another one. The new group stays as it is.
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
            "regroup: other modules of this one's former group have gone on in a group that has ended since, and their state may be another rank's; load all of them from one checkpoint, or compare them");
    if (const int64_t answered = backwards.answered(); group.rank() == from && answered > 0)
        log(LogLevel::kWarn,
            "regroup: all go on from this rank, which was out of data in a join; the steps of the others since, of %lld backwards, are lost",
            static_cast<long long>(answered));
}

// Returns what a rank gives if the others go on from it.
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
            position(former.group());  // before the group, which may be the same, is called
        const std::shared_ptr<Reducer> made = former.make_next(group);
        check_free_on_all(*made);
        if (group->size() > 1) made->compare_models(&former);
        const auto [from, is_reduced] = furthest(*group, former.group().number(), at);
        if (!is_reduced) refuse(*group, former.group(), from);
        warn_of_losses(former, *group, from);
        Regrouped there =
            go_on_from(made, former, *state_from(*group, from, values_of(former, mine), kRegroup));
        if (group.get() != &former.group())  // else it has left nobody behind
            former.group().backwards().note_gone_on_in(group->number());
        return there;
    } catch (const NotReduced &) {  // the group is well, and may be given again
        throw;
    } catch (const UnlikeModels &) {  // so it is here
        throw;
    } catch (...) {
        tell_raised(*group, kRegroup);
        throw;
    }
}

}  // namespace yoke
