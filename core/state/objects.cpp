#include "core/state/objects.h"

#include "core/base/error.h"
#include "core/select/select.h"
#include "core/state/fields.h"

#include <bit>
#include <cstring>

namespace yoke {

namespace {

constexpr const char *kState = "argument 'state_dict'";

Ref<State> dict_of(std::initializer_list<std::pair<const char *, State::Value>> entries)
{
    StateDict dict;
    for (const auto &[key, value] : entries) dict.put(std::string(key), State::make(value));
    return State::make(std::move(dict));
}

}  // namespace

// ---- Loss scaling ---------------------------------------------------------------------------------------------

Ref<State> state_of(const yoke_grad_scaler &scaler)
{
    if (!scaler.is_enabled()) return State::make(StateDict());
    const ScalerOptions now = scaler.state();
    return dict_of({{"scale", now.init_scale},
                    {"growth_factor", now.growth_factor},
                    {"backoff_factor", now.backoff_factor},
                    {"growth_interval", now.growth_interval},
                    {"_growth_tracker", now.growth_tracker}});
}

void load_state(yoke_grad_scaler &scaler, const State &state)
{
    if (!scaler.is_enabled()) return;
    const Fields fields(
        state, kState,
        {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"},
        "; was the state saved by a disabled GradScaler?");
    scaler.set_state({fields.number("scale"), fields.number("growth_factor"),
                      fields.number("backoff_factor"), fields.whole("growth_interval", 1),
                      fields.whole("_growth_tracker", 0), true});
}

// ---- Averages -------------------------------------------------------------------------------------------------

Ref<State> state_of(const yoke_ema &ema)
{
    StateList averages;
    for (size_t i = 0; i < ema.count(); ++i)
        averages.items.push_back(State::make(ema.average(static_cast<int64_t>(i))));
    return dict_of({{"decay", ema.decay()}, {"averages", std::move(averages)}});
}

void load_state(yoke_ema &ema, const State &state)
{
    const Fields fields(state, kState, {"decay", "averages"});
    std::vector<Tensor> averages;
    for (const Ref<State> &each : fields.list("averages").items)
        averages.push_back(tensor_of(*each, fields.place_of("averages")));
    ema.load(fields.number("decay"), averages);
}

// ---- Random numbers -------------------------------------------------------------------------------------------

static_assert(std::endian::native == std::endian::little, "the bytes of a state are little-endian");

Ref<State> state_of(RandomState at)
{
    const int64_t shape[] = {sizeof at};
    Tensor bytes = make_tensor(open_device("cpu"), YOKE_U8, shape, "get_rng_state");
    std::memcpy(bytes->data, &at, sizeof at);
    return State::make(std::move(bytes));
}

RandomState random_state_of(const State &state)
{
    constexpr const char *kPlace = "the state of random numbers";
    const Tensor &bytes = tensor_of(state, kPlace);
    if (bytes->dtype != YOKE_U8 || bytes->ndim != 1 || bytes->numel != sizeof(RandomState) ||
        !bytes->contiguous)
        fail(YOKE_E_VALUE, "%s: %s is %s; it must be the 16 bytes that get_rng_state returned",
             kLoadCall, kPlace, shown(state).c_str());
    RandomState at{};
    copy_to_host(*bytes, &at, sizeof at, kLoadCall);
    return at;
}

}  // namespace yoke
