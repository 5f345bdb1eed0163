#include "yoke/parallel.h"

#include "capi/src/structs.h"
#include "core/base/interrupt.h"
#include "core/parallel/join.h"
#include "core/parallel/model_comparison.h"
#include "core/parallel/reducer.h"
#include "core/parallel/regroup.h"
#include "core/parallel/sampler.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

// ---- Hooks of the host program ----------------------------------------------------------------------------------

class HostHooks {
public:
    HostHooks(const yoke_bucket_hook *hook, const char *call)
        : hook_(read_struct(hook, call, "options->hook"))
    {
        if (!hook_.run)
            fail(YOKE_E_VALUE,
                 "%s: argument 'options->hook' has no run; it must have the function run",
                 short_name(call));
    }
    ~HostHooks()
    {
        if (hook_.drop) hook_.drop(hook_.user);
    }
    HostHooks(const HostHooks &) = delete;
    HostHooks &operator=(const HostHooks &) = delete;

    Ref<Work> run(const FullBucket &bucket) const
    {
        yoke_tensor *tensor = hand_out<yoke_tensor>(bucket.memory);
        yoke_group *group = hand_out<yoke_group>(Ref<Group>::share(&bucket.group));
        yoke_work *given = nullptr;
        const yoke_status status = hook_.run(hook_.user, tensor, static_cast<int32_t>(bucket.index),
                                             bucket.is_last, group, &given);
        yoke_tensor_release(tensor);
        yoke_group_release(group);
        Ref<Work> work = optional_ref(given, "yoke_reducer_create", "work");
        yoke_work_release(given);
        if (status != YOKE_OK) fail_hook(status, bucket.index);
        return work;
    }

private:
    [[noreturn]] void fail_hook(yoke_status status, size_t index) const
    {
        const char *problem = hook_.problem ? hook_.problem(hook_.user) : nullptr;
        fail(status, "backward: the gradient hook failed at bucket %zu: %s", index,
             problem && *problem ? problem : status_name(status));
    }

    const yoke_bucket_hook hook_;
};

BucketHook host_hook(const yoke_bucket_hook *hook, const char *call)
{
    const auto held = std::make_shared<const HostHooks>(hook, call);
    return [held](const FullBucket &bucket) { return held->run(bucket); };
}

// ---- Arguments --------------------------------------------------------------------------------------------------

std::vector<ModuleTensor> named_tensors(yoke_tensor *const *tensors, const char *const *names,
                                        int64_t count, const char *call, const char *argument)
{
    const Tensors given = need_tensors(tensors, count, call, argument);
    if (count > 0 && !names) fail_null(call, "names");
    std::vector<ModuleTensor> named;
    for (int64_t i = 0; i < count; ++i)
        named.push_back(
            {names[i] ? names[i] : "", Tensor::share(TensorList(given)[static_cast<size_t>(i)])});
    return named;
}

ReducerOptions options_of(const yoke_reducer_options *options, const char *call)
{
    ReducerOptions how;
    if (!options) return how;
    const yoke_reducer_options given = read_struct(options, call, "options");
    if (given.hook) how.hook = host_hook(given.hook, call);  // first: the hook has a drop function
    if (given.bucket_mb != 0) how.sizes = bucket_sizes(given.bucket_mb);
    if (given.compression) how.compression = given.compression;
    how.flags = flags_of_reduce_dtype(given.reduce_dtype, "DistributedDataParallel");
    if (given.compression && given.hook)
        fail(YOKE_E_VALUE,
             "%s: argument 'options' has a compression, '%s', and a hook; give only one of them",
             short_name(call), given.compression);
    return how;
}

// Returns the options. If they are invalid, notifies the other ranks.
ReducerOptions options_or_refusal(Group &group, const yoke_reducer_options *options,
                                  const char *call)
try {
    return options_of(options, call);
} catch (const Error &error) {
    tell_refused(group, error);
    throw;
}

std::shared_ptr<Reducer> need_reducer(yoke_reducer *reducer, const char *call)
{
    return need(reducer, call, "reducer").core();
}

// Returns the state for the other ranks, or NULL. A caller with a state must take a state too.
Ref<State> given_state(yoke_state *mine, yoke_state **out, const char *call)
{
    if (out) *out = nullptr;
    if (!mine) return nullptr;
    if (!out)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'mine' is given, but 'out' is NULL; give an address for the other rank's state",
            short_name(call));
    return need_ref(mine, call, "mine");
}

void hand_out_state(yoke_state **out, Ref<State> state)
{
    if (out && state.present() && state->kind() != StateKind::kNone)
        *out = hand_out<yoke_state>(std::move(state));
}

}  // namespace

// ---- Gradients --------------------------------------------------------------------------------------------------

yoke_status yoke_reducer_create(yoke_group *group, yoke_tensor *const *params,
                                const char *const *names, int64_t count,
                                yoke_tensor *const *buffers, const char *const *buffer_names,
                                int64_t buffer_count, const yoke_reducer_options *options,
                                yoke_reducer **out)
{
    constexpr const char *call = "yoke_reducer_create";
    return guard(call, [&] {
        yoke_reducer *&place = need_out(out, call);
        const Ref<Group> held = need_ref(group, call, "group");
        std::vector<ModuleTensor> of_params = named_tensors(params, names, count, call, "params");
        std::vector<ModuleTensor> of_buffers =
            named_tensors(buffers, buffer_names, buffer_count, call, "buffers");
        const Interruptible waits("DistributedDataParallel");
        const ReducerOptions how = options_or_refusal(*held, options, call);
        place = hand_out<yoke_reducer>(Ref<yoke_reducer>::adopt(new yoke_reducer(waits.finished(
            Reducer::make(held, std::move(of_params), std::move(of_buffers), how)))));
    });
}

void yoke_reducer_release(yoke_reducer *reducer)
{
    release_handle(reducer, "yoke_reducer_release");
}

yoke_status yoke_reducer_set_sync(yoke_reducer *reducer, int32_t enabled)
{
    constexpr const char *call = "yoke_reducer_set_sync";
    return guard(call, [&] { need_reducer(reducer, call)->set_sync(enabled != 0); });
}

int32_t yoke_reducer_get_sync(yoke_reducer *reducer)
{
    constexpr const char *call = "yoke_reducer_get_sync";
    return guard_value(call, int32_t{-1},
                       [&] { return int32_t{need_reducer(reducer, call)->is_sync()}; });
}

yoke_status yoke_reducer_set_weight(yoke_reducer *reducer, double n)
{
    constexpr const char *call = "yoke_reducer_set_weight";
    return guard(call, [&] { need_reducer(reducer, call)->set_weight(n); });
}

yoke_status yoke_group_join_begin(yoke_group *group)
{
    constexpr const char *call = "yoke_group_join_begin";
    return guard(call, [&] { begin_join(*Reducer::of(*need_ref(group, call, "group"), "join")); });
}

yoke_status yoke_group_join_end(yoke_group *group, yoke_state *mine, yoke_state **last)
{
    constexpr const char *call = "yoke_group_join_end";
    return guard(call, [&] {
        const Ref<State> given = given_state(mine, last, call);
        const Ref<Group> held = need_ref(group, call, "group");
        const Interruptible waits("join");
        hand_out_state(last, end_join_of(*held, given));
    });
}

yoke_status yoke_reducer_regroup(yoke_reducer *reducer, yoke_group *group, yoke_state *mine,
                                 yoke_state **furthest)
{
    constexpr const char *call = "yoke_reducer_regroup";
    return guard(call, [&] {
        const Ref<State> given = given_state(mine, furthest, call);
        const std::shared_ptr<Reducer> before = need_reducer(reducer, call);
        Ref<Group> held = need_ref(group, call, "group");
        const Interruptible waits("regroup");
        Regrouped made = regroup(*before, held, given);
        reducer->replace(std::move(made.reducer));
        hand_out_state(furthest, std::move(made.state));
    });
}

yoke_status yoke_reducer_check(yoke_reducer *reducer, uint64_t *forward)
{
    constexpr const char *call = "yoke_reducer_check";
    return guard(call, [&] {
        const uint64_t number = need_reducer(reducer, call)->check();
        if (forward) *forward = number;
    });
}

yoke_status yoke_reducer_tie(yoke_reducer *reducer, uint64_t forward, yoke_tensor *const *outputs,
                             int64_t count, yoke_tensor **outs)
{
    constexpr const char *call = "yoke_reducer_tie";
    return guard(call, [&] {
        const Tensors given = need_tensors(outputs, count, call, "outputs");
        if (count > 0 && !outs) fail_null(call, "outs");
        std::vector<Tensor> tied = need_reducer(reducer, call)->tied(TensorList(given), forward);
        for (size_t i = 0; i < tied.size(); ++i) outs[i] = hand_out(std::move(tied[i]));
    });
}

yoke_status yoke_reducer_state(yoke_reducer *reducer, yoke_state **out)
{
    constexpr const char *call = "yoke_reducer_state";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        place = hand_out<yoke_state>(need_reducer(reducer, call)->comm_state());
    });
}

yoke_status yoke_reducer_load_state(yoke_reducer *reducer, yoke_state *state)
{
    constexpr const char *call = "yoke_reducer_load_state";
    return guard(call, [&] {
        if (!state) fail_null(call, "state");
        need_reducer(reducer, call)->load_comm_state(*object_of(state, call, "state"));
    });
}

// ---- Examples ---------------------------------------------------------------------------------------------------

namespace {

SamplerOptions from_public(const yoke_sampler_options &given)
{
    SamplerOptions options;
    options.count = given.count;
    options.rank = given.rank;
    options.size = given.world_size;
    options.is_shuffled = !given.no_shuffle;
    options.seed = given.seed;
    options.drops_last = given.drop_last != 0;
    options.is_padded = !given.no_pad;
    if (given.shares && given.world_size > 0 && given.world_size <= YOKE_MAX_RANKS)
        options.shares.assign(given.shares, given.shares + given.world_size);
    return options;
}

}  // namespace

yoke_status yoke_sampler_create(const yoke_sampler_options *options, yoke_sampler **out)
{
    constexpr const char *call = "yoke_sampler_create";
    return guard(call, [&] {
        yoke_sampler *&place = need_out(out, call);
        place = hand_out<yoke_sampler>(Ref<yoke_sampler>::adopt(
            new yoke_sampler(from_public(read_struct(options, call, "options")))));
    });
}

void yoke_sampler_release(yoke_sampler *sampler)
{
    release_handle(sampler, "yoke_sampler_release");
}

yoke_status yoke_sampler_set_epoch(yoke_sampler *sampler, int64_t epoch)
{
    constexpr const char *call = "yoke_sampler_set_epoch";
    return guard(call, [&] { need(sampler, call, "sampler").set_epoch(epoch); });
}

yoke_status yoke_sampler_begin(yoke_sampler *sampler)
{
    constexpr const char *call = "yoke_sampler_begin";
    return guard(call, [&] { need(sampler, call, "sampler").begin(); });
}

yoke_status yoke_sampler_next(yoke_sampler *sampler, int64_t *index)
{
    constexpr const char *call = "yoke_sampler_next";
    return guard(call, [&] {
        need(index, call, "index") = need(sampler, call, "sampler").next().value_or(-1);
    });
}

int64_t yoke_sampler_length(yoke_sampler *sampler)
{
    constexpr const char *call = "yoke_sampler_length";
    return guard_value(call, int64_t{-1}, [&] { return need(sampler, call, "sampler").length(); });
}

yoke_status yoke_sampler_get_state(yoke_sampler *sampler, yoke_sampler_state *state)
{
    constexpr const char *call = "yoke_sampler_get_state";
    return guard(call, [&] {
        const SamplerState now = need(sampler, call, "sampler").state();
        write_struct(state, {sizeof(yoke_sampler_state), 0, now.epoch, now.consumed}, call,
                     "state");
    });
}

yoke_status yoke_sampler_load(yoke_sampler *sampler, const yoke_sampler_state *state)
{
    constexpr const char *call = "yoke_sampler_load";
    return guard(call, [&] {
        const yoke_sampler_state given = read_struct(state, call, "state");
        need(sampler, call, "sampler").load({given.epoch, given.consumed});
    });
}

yoke_status yoke_sampler_regroup(yoke_sampler *sampler, yoke_group *group)
{
    constexpr const char *call = "yoke_sampler_regroup";
    return guard(call, [&] {
        yoke_sampler &regrouped = need(sampler, call, "sampler");
        const Ref<Group> held = need_ref(group, call, "group");
        const Interruptible waits("regroup");
        regrouped.regroup(*held);
    });
}
