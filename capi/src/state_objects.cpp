// Functions of yoke/state.h that differ by the kind of object.
#include "capi/src/guard.h"
#include "core/base/random.h"
#include "core/state/objects.h"
#include "yoke/state.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

// Gives the caller a new state of the object in *out. A single thread at a time may use the object.
template <class T>
yoke_status give_state(T *object, const char *argument, yoke_state **out, const char *call)
{
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        const InTurn<T> turn(need(object, call, argument), call, argument);
        place = hand_out<yoke_state>(state_of(*turn));
    });
}

template <class T>
yoke_status take_state(T *object, const char *argument, yoke_state *state, const char *call)
{
    return guard(call, [&] {
        const InTurn<T> turn(need(object, call, argument), call, argument);
        load_state(*turn, need(state, call, "state"));
    });
}

}  // namespace

yoke_status yoke_optimizer_state(yoke_optimizer *optimizer, yoke_state **out)
{
    return give_state(optimizer, "optimizer", out, "yoke_optimizer_state");
}

yoke_status yoke_optimizer_load_state(yoke_optimizer *optimizer, yoke_state *state)
{
    return take_state(optimizer, "optimizer", state, "yoke_optimizer_load_state");
}

yoke_status yoke_grad_scaler_state(yoke_grad_scaler *scaler, yoke_state **out)
{
    return give_state(scaler, "scaler", out, "yoke_grad_scaler_state");
}

yoke_status yoke_grad_scaler_load_state(yoke_grad_scaler *scaler, yoke_state *state)
{
    return take_state(scaler, "scaler", state, "yoke_grad_scaler_load_state");
}

yoke_status yoke_ema_state(yoke_ema *ema, yoke_state **out)
{
    return give_state(ema, "ema", out, "yoke_ema_state");
}

yoke_status yoke_ema_load_state(yoke_ema *ema, yoke_state *state)
{
    return take_state(ema, "ema", state, "yoke_ema_load_state");
}

yoke_status yoke_rng_state(yoke_state **out)
{
    constexpr const char *call = "yoke_rng_state";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        place = hand_out<yoke_state>(state_of(random_state()));
    });
}

yoke_status yoke_rng_load_state(yoke_state *state)
{
    constexpr const char *call = "yoke_rng_load_state";
    return guard(call, [&] { set_random_state(random_state_of(need(state, call, "state"))); });
}

yoke_status yoke_schedule_check(yoke_state *schedule, int64_t groups)
{
    constexpr const char *call = "yoke_schedule_check";
    return guard(call, [&] { check_schedule(need(schedule, call, "schedule"), groups); });
}

yoke_status yoke_schedule_apply(yoke_state *schedule, yoke_optimizer *optimizer, int64_t step)
{
    constexpr const char *call = "yoke_schedule_apply";
    return guard(call, [&] {
        const Ref<State> node = need_ref(schedule, call, "schedule");
        const InTurn<yoke_optimizer> turn = in_turn(optimizer, call, "optimizer");
        const size_t groups = turn->group_count();
        check_schedule(*node, static_cast<int64_t>(groups));
        if (step < 0)
            fail(YOKE_E_VALUE, "%s: argument 'step' is %lld; steps count from 0", short_name(call),
                 static_cast<long long>(step));
        if (step > 0) turn->note_schedule_step();
        for (size_t group = 0; group < groups; ++group)
            turn->set_lr(static_cast<int64_t>(group), schedule_lr(*node, step, group));
        node->put(std::string("last_step"), State::make(step), short_name(call));
    });
}
