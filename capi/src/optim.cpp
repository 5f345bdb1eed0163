#include "yoke/optim.h"

#include "capi/src/structs.h"
#include "core/optim/sgd.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

SgdOptions from_public(const yoke_sgd_options *options, const char *call, const char *argument)
{
    const yoke_sgd_options given = read_struct(options, call, argument);
    return {given.lr, given.momentum, given.weight_decay, given.nesterov != 0};
}

Sgd &need_sgd(yoke_optimizer *optimizer, const char *call)
{
    auto *sgd = dynamic_cast<Sgd *>(&need(optimizer, call, "optimizer"));
    if (!sgd)
        fail(YOKE_E_TYPE,
             "%s: the optimizer is of another kind than SGD; call the functions of its own kind",
             short_name(call));
    return *sgd;
}

yoke_optimizer &need_optimizer(yoke_optimizer *optimizer, const char *call)
{
    return need(optimizer, call, "optimizer");
}

}  // namespace

yoke_status yoke_sgd_create(const yoke_sgd_options *defaults, yoke_optimizer **out)
{
    constexpr const char *call = "yoke_sgd_create";
    return guard(call, [&] {
        yoke_optimizer *&place = need_out(out, call);
        place = new Sgd(from_public(defaults, call, "defaults"));
    });
}

yoke_status yoke_sgd_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params, int64_t count,
                               const yoke_sgd_options *options)
{
    constexpr const char *call = "yoke_sgd_add_group";
    return guard(call, [&] {
        Sgd &sgd = need_sgd(optimizer, call);
        sgd.add_group(need_tensors(params, count, call, "params"),
                      options ? from_public(options, call, "options") : sgd.defaults());
    });
}

yoke_status yoke_sgd_get_options(yoke_optimizer *optimizer, int64_t group,
                                 yoke_sgd_options *options)
{
    constexpr const char *call = "yoke_sgd_get_options";
    return guard(call, [&] {
        const SgdOptions &now = need_sgd(optimizer, call).options(group);
        write_struct(options,
                     yoke_sgd_options{sizeof(yoke_sgd_options), now.nesterov, now.lr, now.momentum,
                                      now.weight_decay},
                     call, "options");
    });
}

yoke_status yoke_sgd_set_options(yoke_optimizer *optimizer, int64_t group,
                                 const yoke_sgd_options *options)
{
    constexpr const char *call = "yoke_sgd_set_options";
    return guard(call, [&] {
        need_sgd(optimizer, call).set_options(group, from_public(options, call, "options"));
    });
}

yoke_optimizer *yoke_optimizer_retain(yoke_optimizer *optimizer)
{
    if (optimizer) optimizer->retain();
    return optimizer;
}

void yoke_optimizer_release(yoke_optimizer *optimizer)
{
    if (optimizer) optimizer->release();
}

yoke_status yoke_optimizer_step(yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_optimizer_step";
    return guard(call, [&] { need_optimizer(optimizer, call).step(); });
}

yoke_status yoke_optimizer_zero_grad(yoke_optimizer *optimizer, int32_t set_to_none)
{
    constexpr const char *call = "yoke_optimizer_zero_grad";
    return guard(call, [&] { need_optimizer(optimizer, call).zero_grad(set_to_none != 0); });
}

yoke_status yoke_optimizer_get_lr(yoke_optimizer *optimizer, int64_t group, double *lr)
{
    constexpr const char *call = "yoke_optimizer_get_lr";
    return guard(call, [&] {
        need(lr, call, "lr");
        *lr = need_optimizer(optimizer, call).lr(group);
    });
}

yoke_status yoke_optimizer_set_lr(yoke_optimizer *optimizer, int64_t group, double lr)
{
    constexpr const char *call = "yoke_optimizer_set_lr";
    return guard(call, [&] { need_optimizer(optimizer, call).set_lr(group, lr); });
}

int64_t yoke_optimizer_group_count(yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_optimizer_group_count";
    return guard_value(call, int64_t{-1}, [&] {
        return static_cast<int64_t>(need_optimizer(optimizer, call).group_count());
    });
}

yoke_status yoke_optimizer_param_count(yoke_optimizer *optimizer, int64_t group, int64_t *count)
{
    constexpr const char *call = "yoke_optimizer_param_count";
    return guard(call, [&] {
        need(count, call, "count");
        *count = static_cast<int64_t>(need_optimizer(optimizer, call).params(group).size());
    });
}

yoke_status yoke_optimizer_param(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                 yoke_tensor **out)
{
    constexpr const char *call = "yoke_optimizer_param";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        const auto &params = need_optimizer(optimizer, call).params(group);
        if (index < 0 || static_cast<size_t>(index) >= params.size())
            fail(YOKE_E_INDEX, "%s: argument 'index' is %lld; group %lld has %zu parameters",
                 short_name(call), static_cast<long long>(index), static_cast<long long>(group),
                 params.size());
        place = Tensor(params[static_cast<size_t>(index)]).detach();
    });
}

yoke_status yoke_optimizer_get_state(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                     const char *name, yoke_tensor **out)
{
    constexpr const char *call = "yoke_optimizer_get_state";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place =
            need_optimizer(optimizer, call).state(group, index, &need(name, call, "name")).detach();
    });
}

yoke_status yoke_optimizer_set_state(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                     const char *name, yoke_tensor *value)
{
    constexpr const char *call = "yoke_optimizer_set_state";
    return guard(call, [&] {
        need_optimizer(optimizer, call).set_state(group, index, &need(name, call, "name"), value);
    });
}

double yoke_schedule_linear(double start, double end, int64_t total_steps, int64_t step)
{
    return schedule_linear(start, end, total_steps, step);
}
