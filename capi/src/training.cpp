// training.cpp: what stands beside the optimizers in yoke/optim.h: clipping, averages, schedules.
#include "capi/src/guard.h"
#include "core/optim/ema.h"
#include "core/optim/gradients.h"
#include "core/optim/schedule.h"
#include "yoke/optim.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

InTurn<yoke_ema> need_ema(yoke_ema *ema, const char *call)
{
    return {need(ema, call, "ema"), call, "EMA"};
}

}  // namespace

yoke_status yoke_clip_grad_norm(yoke_tensor *const *params, int64_t count, double max_norm,
                                double norm_type, yoke_tensor **norm)
{
    constexpr const char *call = "yoke_clip_grad_norm";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(norm, call, "norm");
        place = hand_out(
            clip_grad_norm(need_tensors(params, count, call, "params"), max_norm, norm_type));
    });
}

yoke_status yoke_ema_create(yoke_tensor *const *params, int64_t count, double decay, yoke_ema **out)
{
    constexpr const char *call = "yoke_ema_create";
    return guard(call, [&] {
        yoke_ema *&place = need_out(out, call);
        place = hand_out<yoke_ema>(
            Ref<yoke_ema>::adopt(new yoke_ema(need_tensors(params, count, call, "params"), decay)));
    });
}

void yoke_ema_release(yoke_ema *ema)
{
    release_handle(ema, "yoke_ema_release");
}

yoke_status yoke_ema_update(yoke_ema *ema)
{
    constexpr const char *call = "yoke_ema_update";
    return guard(call, [&] { need_ema(ema, call)->update(); });
}

yoke_status yoke_ema_copy_to_params(yoke_ema *ema)
{
    constexpr const char *call = "yoke_ema_copy_to_params";
    return guard(call, [&] { need_ema(ema, call)->copy_to_params(); });
}

yoke_status yoke_ema_swap(yoke_ema *ema)
{
    constexpr const char *call = "yoke_ema_swap";
    return guard(call, [&] { need_ema(ema, call)->swap(); });
}

yoke_status yoke_ema_average(yoke_ema *ema, int64_t index, yoke_tensor **out)
{
    constexpr const char *call = "yoke_ema_average";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(Tensor(need_ema(ema, call)->average(index)));
    });
}

double yoke_schedule_linear(double start, double end, int64_t total_steps, int64_t step)
{
    return schedule_linear(start, end, total_steps, step);
}

double yoke_schedule_constant(double base, double factor, int64_t total_steps, int64_t step)
{
    return schedule_constant(base, factor, total_steps, step);
}

double yoke_schedule_cosine(double base, double end, int64_t total_steps, int64_t warmup_steps,
                            int64_t step)
{
    return schedule_cosine(base, end, total_steps, warmup_steps, step);
}

double yoke_schedule_step(double base, int64_t step_size, double gamma, int64_t step)
{
    return schedule_step(base, step_size, gamma, step);
}

double yoke_schedule_one_cycle(double max, int64_t total_steps, double pct_start, double div,
                               double final_div, int64_t step)
{
    return schedule_one_cycle(max, total_steps, pct_start, div, final_div, step);
}
