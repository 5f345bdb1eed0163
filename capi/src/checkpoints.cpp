#include "yoke/checkpoints.h"

#include "capi/src/guard.h"
#include "core/state/fit.h"
#include "core/state/manager.h"

using namespace yoke;
using namespace yoke::capi;

yoke_status yoke_checkpoint_manager_open(const char *folder, int64_t keep,
                                         yoke_checkpoint_manager **out)
{
    constexpr const char *call = "yoke_checkpoint_manager_open";
    return guard(call, [&] {
        yoke_checkpoint_manager *&place = need_out(out, call);
        place = hand_out<yoke_checkpoint_manager>(
            CheckpointManager::open(&need(folder, call, "folder"), keep, short_name(call)));
    });
}

yoke_checkpoint_manager *yoke_checkpoint_manager_retain(yoke_checkpoint_manager *manager)
{
    return retain_handle(manager, "yoke_checkpoint_manager_retain");
}

void yoke_checkpoint_manager_release(yoke_checkpoint_manager *manager)
{
    release_handle(manager, "yoke_checkpoint_manager_release");
}

yoke_status yoke_checkpoint_manager_save(yoke_checkpoint_manager *manager, int64_t step,
                                         yoke_state *state, yoke_state *metadata, int32_t blocking,
                                         yoke_work **out)
{
    constexpr const char *call = "yoke_checkpoint_manager_save";
    return guard(call, [&] {
        if (out) *out = nullptr;
        const Ref<CheckpointManager> held = need_ref(manager, call, "manager");
        SaveOptions options;
        options.is_blocking = blocking != 0;
        if (metadata) options.metadata = &need(metadata, call, "metadata");
        Ref<Work> work = held->save(step, need(state, call, "state"), options, short_name(call));
        if (out) *out = hand_out<yoke_work>(std::move(work));
    });
}

yoke_status yoke_checkpoint_manager_latest(yoke_checkpoint_manager *manager, int64_t *step)
{
    constexpr const char *call = "yoke_checkpoint_manager_latest";
    return guard(call, [&] {
        int64_t &place = need(step, call, "step");
        place = need_ref(manager, call, "manager")->latest(short_name(call)).value_or(-1);
    });
}

yoke_status yoke_checkpoint_manager_steps(yoke_checkpoint_manager *manager, yoke_state **out)
{
    constexpr const char *call = "yoke_checkpoint_manager_steps";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        StateList list;
        for (const int64_t step : need_ref(manager, call, "manager")->steps(short_name(call)))
            list.items.push_back(State::make(step));
        place = hand_out<yoke_state>(State::make(std::move(list)));
    });
}

yoke_status yoke_checkpoint_manager_load(yoke_checkpoint_manager *manager, int64_t step,
                                         yoke_device *device, int32_t verify, yoke_state *into,
                                         yoke_state **out)
{
    constexpr const char *call = "yoke_checkpoint_manager_load";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        const Ref<CheckpointManager> held = need_ref(manager, call, "manager");
        ManagerLoad options;
        if (step != -1) options.step = step;
        if (device) options.device = object_of(device, call, "device");
        options.verify = verify != 0;
        const State *destination = into ? &need(into, call, "into") : nullptr;
        Ref<State> state = held->load(options, short_name(call));
        if (destination) copy_state(*state, *destination, short_name(call));
        place = hand_out<yoke_state>(std::move(state));
    });
}

yoke_status yoke_state_copy_into(yoke_state *state, yoke_state *into)
{
    constexpr const char *call = "yoke_state_copy_into";
    return guard(call, [&] {
        copy_state(need(state, call, "state"), need(into, call, "into"), short_name(call));
    });
}

yoke_status yoke_state_misfits(yoke_state *state, yoke_state *into, yoke_state **out)
{
    constexpr const char *call = "yoke_state_misfits";
    return guard(call, [&] {
        yoke_state *&place = need_out(out, call);
        StateList list;
        for (std::string &line : misfits(need(state, call, "state"), need(into, call, "into")))
            list.items.push_back(State::make(std::move(line)));
        place = hand_out<yoke_state>(State::make(std::move(list)));
    });
}
