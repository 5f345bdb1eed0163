#include "core/parallel/join.h"

#include "core/base/error.h"
#include "core/comm/coalesce.h"
#include "core/comm/exchange.h"
#include "core/parallel/module_values.h"
#include "core/parallel/reducer.h"

#include <vector>

namespace yoke {

namespace {

constexpr const char *kJoin = "join";

bool has_any_gradient(const WrappedModule &module)
{
    for (size_t i = 0; i < module.size(); ++i)
        if (module.leaf(i).grad().present()) return true;
    return false;
}

// Notes that this rank is out of data. If no_sync has left gradients without a reduction, ends the group and raises
// YOKE_E_STATE, because the other ranks wait for this rank.
void leave(Reducer &reducer)
{
    const BackwardGate::Leave left = reducer.gate().leave_join();
    if (left.is_sync && !(left.has_unsynced && has_any_gradient(reducer.module()))) return;
    const std::string problem = format(
        "%s: this rank leaves with gradients added up in no_sync, which no backward has reduced; make the last backward outside of no_sync",
        kJoin);
    reducer.group().abort(problem);
    throw Error(YOKE_E_STATE, problem);
}

// Gives all ranks the root's gradients. Usually there are no gradients, since steps end with zero_grad. Gradients
// added up for a step behind the join are then alike on all ranks.
void take_gradients(const Reducer &reducer, int32_t root)
{
    const WrappedModule &module = reducer.module();
    std::vector<int64_t> has(module.size());
    for (size_t i = 0; i < has.size(); ++i) has[i] = module.leaf(i).grad().present();
    has = from_rank(reducer.group(), root, has, kJoin);
    std::vector<ModuleTensor> told;
    for (size_t i = 0; i < has.size(); ++i) {
        LeafNode &leaf = module.leaf(i);
        if (!has[i])
            leaf.set_grad(nullptr);
        else if (!leaf.grad().present())
            leaf.set_grad(alias(*reducer.layout().view_of(i)));
        if (has[i]) told.push_back({module.params()[i].name, leaf.grad()});
    }
    send_values(reducer.group(), told, root, Writes::kAll);
}

// Gives all ranks the root's values and gradients, and returns the root's `mine`. With the root's values this rank is
// as far as the root. On an error, ends the group.
Ref<State> state_of_last(Reducer &reducer, int32_t root, const Ref<State> &mine)
try {
    Group &group = reducer.group();
    send_module(group, reducer.module(), root);
    if (group.rank() != root) reducer.writes().note_given(group.flights().issued_ever());
    take_gradients(reducer, root);
    Ref<State> told = state_from(group, root, mine.present() ? mine : State::make(), kJoin);
    group.backwards().end_join();
    return told;
} catch (const Error &error) {
    reducer.group().abort(format("its %s failed: ", kJoin) + error.what());
    throw;
}

}  // namespace

void begin_join(Reducer &reducer)
{
    Coalescing::check_closed(kJoin);
    reducer.check();
    reducer.gate().begin_join();
    reducer.group().backwards().begin_join();
}

Ref<State> end_join(Reducer &reducer, const Ref<State> &mine)
{
    const NoGrad no_grad;
    const NoAutocast no_autocast;
    reducer.check();
    leave(reducer);
    const bool is_alone = reducer.group().size() == 1;
    while (!is_alone && reducer.steps().answer()) {
    }
    const int32_t root = reducer.gate().end_join();
    if (is_alone) return mine;
    if (root < 0)
        fail(
            YOKE_E_STATE,
            "%s: all %d ranks were out of data before any backward; give at least one rank a batch",
            kJoin, reducer.group().size());
    return state_of_last(reducer, root, mine);
}

Ref<State> end_join_of(Group &group, const Ref<State> &mine)
{
    std::shared_ptr<Reducer> reducer;
    try {
        reducer = Reducer::of(group, kJoin);
    } catch (const Error &error) {
        group.abort(error.what());
        throw;
    }
    return end_join(*reducer, mine);
}

}  // namespace yoke
