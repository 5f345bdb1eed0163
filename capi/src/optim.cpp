#include "yoke/optim.h"

#include "capi/src/structs.h"
#include "core/optim/adam.h"
#include "core/optim/sgd.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

SgdOptions from_public(const yoke_sgd_options *options, const char *call, const char *argument)
{
    const yoke_sgd_options given = read_struct(options, call, argument);
    SgdOptions ours;
    ours.lr = given.lr;
    ours.weight_decay = given.weight_decay;
    ours.master_weights = given.master_weights != 0;
    ours.momentum = given.momentum;
    ours.nesterov = given.nesterov != 0;
    return ours;
}

AdamOptions from_public(const yoke_adam_options *options, const char *call, const char *argument)
{
    const yoke_adam_options given = read_struct(options, call, argument);
    AdamOptions ours;
    ours.lr = given.lr;
    ours.weight_decay = given.weight_decay;
    ours.master_weights = given.master_weights != 0;
    ours.beta1 = given.beta1;
    ours.beta2 = given.beta2;
    ours.eps = given.eps;
    return ours;
}

yoke_sgd_options to_public(const SgdOptions &o)
{
    return {sizeof(yoke_sgd_options), o.nesterov,       o.lr, o.momentum,
            o.weight_decay,           o.master_weights, 0};
}

yoke_adam_options to_public(const AdamOptions &o)
{
    return {
        sizeof(yoke_adam_options), o.master_weights, o.lr, o.beta1, o.beta2, o.eps, o.weight_decay};
}

template <class Kind>
InTurn<Kind> need_kind(yoke_optimizer *optimizer, const char *call)
{
    yoke_optimizer &any = need(optimizer, call, "optimizer");
    auto *kind = dynamic_cast<Kind *>(&any);
    if (!kind)
        fail(YOKE_E_TYPE, "%s: the optimizer is %s; call the functions for this kind",
             short_name(call), any.kind());
    return {*kind, call, "optimizer"};
}

template <class Kind, class Options>
yoke_status add_group(yoke_optimizer *optimizer, yoke_tensor *const *params, int64_t count,
                      const Options *options, const char *call)
{
    return guard(call, [&] {
        const auto kind = need_kind<Kind>(optimizer, call);
        kind->add_group(need_tensors(params, count, call, "params"),
                        options ? from_public(options, call, "options") : kind->defaults());
    });
}

template <class Kind, class Options>
yoke_status get_options(yoke_optimizer *optimizer, int64_t group, Options *options,
                        const char *call)
{
    return guard(call, [&] {
        write_struct(options, to_public(need_kind<Kind>(optimizer, call)->options(group)), call,
                     "options");
    });
}

template <class Kind, class Options>
yoke_status set_options(yoke_optimizer *optimizer, int64_t group, const Options *options,
                        const char *call)
{
    return guard(call, [&] {
        need_kind<Kind>(optimizer, call)->set_options(group, from_public(options, call, "options"));
    });
}

yoke_status create_adam(const yoke_adam_options *defaults, bool decoupled, yoke_optimizer **out,
                        const char *call)
{
    return guard(call, [&] {
        yoke_optimizer *&place = need_out(out, call);
        place = hand_out<yoke_optimizer>(
            Ref<Adam>::adopt(new Adam(from_public(defaults, call, "defaults"), decoupled)));
    });
}

}  // namespace

// ---- SGD ---------------------------------------------------------------------------------------------

yoke_status yoke_sgd_create(const yoke_sgd_options *defaults, yoke_optimizer **out)
{
    constexpr const char *call = "yoke_sgd_create";
    return guard(call, [&] {
        yoke_optimizer *&place = need_out(out, call);
        place = hand_out<yoke_optimizer>(
            Ref<Sgd>::adopt(new Sgd(from_public(defaults, call, "defaults"))));
    });
}

yoke_status yoke_sgd_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params, int64_t count,
                               const yoke_sgd_options *options)
{
    return add_group<Sgd>(optimizer, params, count, options, "yoke_sgd_add_group");
}

yoke_status yoke_sgd_get_options(yoke_optimizer *optimizer, int64_t group,
                                 yoke_sgd_options *options)
{
    return get_options<Sgd>(optimizer, group, options, "yoke_sgd_get_options");
}

yoke_status yoke_sgd_set_options(yoke_optimizer *optimizer, int64_t group,
                                 const yoke_sgd_options *options)
{
    return set_options<Sgd>(optimizer, group, options, "yoke_sgd_set_options");
}

// ---- Adam and AdamW ----------------------------------------------------------------------------------

yoke_status yoke_adam_create(const yoke_adam_options *defaults, yoke_optimizer **out)
{
    return create_adam(defaults, false, out, "yoke_adam_create");
}

yoke_status yoke_adamw_create(const yoke_adam_options *defaults, yoke_optimizer **out)
{
    return create_adam(defaults, true, out, "yoke_adamw_create");
}

yoke_status yoke_adam_add_group(yoke_optimizer *optimizer, yoke_tensor *const *params,
                                int64_t count, const yoke_adam_options *options)
{
    return add_group<Adam>(optimizer, params, count, options, "yoke_adam_add_group");
}

yoke_status yoke_adam_get_options(yoke_optimizer *optimizer, int64_t group,
                                  yoke_adam_options *options)
{
    return get_options<Adam>(optimizer, group, options, "yoke_adam_get_options");
}

yoke_status yoke_adam_set_options(yoke_optimizer *optimizer, int64_t group,
                                  const yoke_adam_options *options)
{
    return set_options<Adam>(optimizer, group, options, "yoke_adam_set_options");
}

// ---- Any optimizer -----------------------------------------------------------------------------------

yoke_optimizer *yoke_optimizer_retain(yoke_optimizer *optimizer)
{
    return retain_handle(optimizer, "yoke_optimizer_retain");
}

void yoke_optimizer_release(yoke_optimizer *optimizer)
{
    release_handle(optimizer, "yoke_optimizer_release");
}

yoke_status yoke_optimizer_step(yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_optimizer_step";
    return guard(call, [&] { in_turn(optimizer, call, "optimizer")->step(); });
}

yoke_status yoke_optimizer_zero_grad(yoke_optimizer *optimizer, int32_t set_to_none)
{
    constexpr const char *call = "yoke_optimizer_zero_grad";
    return guard(call, [&] { in_turn(optimizer, call, "optimizer")->zero_grad(set_to_none != 0); });
}

yoke_status yoke_optimizer_note_schedule(yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_optimizer_note_schedule";
    return guard(call, [&] { in_turn(optimizer, call, "optimizer")->note_schedule_step(); });
}

yoke_status yoke_optimizer_get_lr(yoke_optimizer *optimizer, int64_t group, double *lr)
{
    constexpr const char *call = "yoke_optimizer_get_lr";
    return guard(call, [&] {
        need(lr, call, "lr");
        *lr = in_turn(optimizer, call, "optimizer")->lr(group);
    });
}

yoke_status yoke_optimizer_set_lr(yoke_optimizer *optimizer, int64_t group, double lr)
{
    constexpr const char *call = "yoke_optimizer_set_lr";
    return guard(call, [&] { in_turn(optimizer, call, "optimizer")->set_lr(group, lr); });
}

int64_t yoke_optimizer_group_count(yoke_optimizer *optimizer)
{
    constexpr const char *call = "yoke_optimizer_group_count";
    return guard_value(call, int64_t{-1}, [&] {
        return static_cast<int64_t>(in_turn(optimizer, call, "optimizer")->group_count());
    });
}

yoke_status yoke_optimizer_param_count(yoke_optimizer *optimizer, int64_t group, int64_t *count)
{
    constexpr const char *call = "yoke_optimizer_param_count";
    return guard(call, [&] {
        need(count, call, "count");
        *count = static_cast<int64_t>(in_turn(optimizer, call, "optimizer")->params(group).size());
    });
}

yoke_status yoke_optimizer_param(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                 yoke_tensor **out)
{
    constexpr const char *call = "yoke_optimizer_param";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        const auto turn = in_turn(optimizer, call, "optimizer");
        const auto &params = turn->params(group);
        if (index < 0 || static_cast<size_t>(index) >= params.size())
            fail(YOKE_E_INDEX,
                 "%s: argument 'index' is %lld; group %lld has %zu parameters, counted from 0",
                 short_name(call), static_cast<long long>(index), static_cast<long long>(group),
                 params.size());
        place = hand_out(Tensor(params[static_cast<size_t>(index)]));
    });
}

const char *yoke_optimizer_state_name(yoke_optimizer *optimizer, int64_t index)
{
    constexpr const char *call = "yoke_optimizer_state_name";
    return guard_value(call, static_cast<const char *>(nullptr), [&] {
        // Without a turn: the names are the kind's own, and NULL would be taken for their end.
        const auto names = need(optimizer, call, "optimizer").state_names();
        return index >= 0 && static_cast<size_t>(index) < names.size()
                   ? names[static_cast<size_t>(index)]
                   : nullptr;
    });
}

yoke_status yoke_optimizer_get_state(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                     const char *name, yoke_tensor **out)
{
    constexpr const char *call = "yoke_optimizer_get_state";
    return guard(call, [&] {
        yoke_tensor *&place = need_out(out, call);
        place = hand_out(
            in_turn(optimizer, call, "optimizer")->state(group, index, &need(name, call, "name")));
    });
}

yoke_status yoke_optimizer_set_state(yoke_optimizer *optimizer, int64_t group, int64_t index,
                                     const char *name, yoke_tensor *value)
{
    constexpr const char *call = "yoke_optimizer_set_state";
    return guard(call, [&] {
        in_turn(optimizer, call, "optimizer")
            ->set_state(group, index, &need(name, call, "name"), object_of(value, call, "value"));
    });
}
