#include "core/optim/grad_scaler.h"

#include "capi/src/structs.h"
#include "yoke/amp.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

ScalerOptions from_public(const yoke_grad_scaler_options *options, const char *call,
                          const char *argument)
{
    const yoke_grad_scaler_options given = read_struct(options, call, argument);
    return {given.scale,           given.growth_factor,  given.backoff_factor,
            given.growth_interval, given.growth_tracker, given.disabled == 0};
}

InTurn<yoke_grad_scaler> need_scaler(yoke_grad_scaler *scaler, const char *call)
{
    return {need(scaler, call, "scaler"), call, "grad scaler"};
}

}  // namespace

yoke_status yoke_grad_scaler_create(const yoke_grad_scaler_options *options, yoke_grad_scaler **out)
{
    constexpr const char *call = "yoke_grad_scaler_create";
    return guard(call, [&] {
        yoke_grad_scaler *&place = need_out(out, call);
        place = hand_out<yoke_grad_scaler>(Ref<yoke_grad_scaler>::adopt(
            new yoke_grad_scaler(from_public(options, call, "options"))));
    });
}

void yoke_grad_scaler_release(yoke_grad_scaler *scaler)
{
    release_handle(scaler, "yoke_grad_scaler_release");
}

yoke_status yoke_grad_scaler_scale(yoke_grad_scaler *scaler, yoke_tensor *x, yoke_tensor **out)
{
    constexpr const char *call = "yoke_grad_scaler_scale";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(need_scaler(scaler, call)->scale(need(x, call, "x")));
    });
}

yoke_status yoke_grad_scaler_unscale(yoke_grad_scaler *scaler, yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_grad_scaler_unscale";
    return guard(
        call, [&] { need_scaler(scaler, call)->unscale(*in_turn(optimizer, call, "optimizer")); });
}

yoke_status yoke_grad_scaler_step(yoke_grad_scaler *scaler, yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_grad_scaler_step";
    return guard(call,
                 [&] { need_scaler(scaler, call)->step(*in_turn(optimizer, call, "optimizer")); });
}

yoke_status yoke_grad_scaler_update(yoke_grad_scaler *scaler)
{
    constexpr const char *call = "yoke_grad_scaler_update";
    return guard(call, [&] { need_scaler(scaler, call)->update(); });
}

yoke_status yoke_grad_scaler_update_to(yoke_grad_scaler *scaler, yoke_tensor *scale)
{
    constexpr const char *call = "yoke_grad_scaler_update_to";
    return guard(call, [&] { need_scaler(scaler, call)->update_to(need(scale, call, "scale")); });
}

yoke_status yoke_grad_scaler_get_state(yoke_grad_scaler *scaler, yoke_grad_scaler_options *state)
{
    constexpr const char *call = "yoke_grad_scaler_get_state";
    return guard(call, [&] {
        const ScalerOptions now = need_scaler(scaler, call)->state();
        write_struct(state,
                     yoke_grad_scaler_options{sizeof(yoke_grad_scaler_options), !now.enabled,
                                              now.init_scale, now.growth_factor, now.backoff_factor,
                                              now.growth_interval, now.growth_tracker},
                     call, "state");
    });
}

yoke_status yoke_grad_scaler_set_state(yoke_grad_scaler *scaler,
                                       const yoke_grad_scaler_options *state)
{
    constexpr const char *call = "yoke_grad_scaler_set_state";
    return guard(call,
                 [&] { need_scaler(scaler, call)->set_state(from_public(state, call, "state")); });
}

yoke_status yoke_grad_scaler_set_rule(yoke_grad_scaler *scaler, double growth_factor,
                                      double backoff_factor, int64_t growth_interval)
{
    constexpr const char *call = "yoke_grad_scaler_set_rule";
    return guard(call, [&] {
        need_scaler(scaler, call)->set_rule(growth_factor, backoff_factor, growth_interval);
    });
}
