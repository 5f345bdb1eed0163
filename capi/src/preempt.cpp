#include "yoke/preempt.h"

#include "capi/src/guard.h"
#include "core/base/preempt.h"

using namespace yoke;
using namespace yoke::capi;

namespace {

// Call named in messages for watches of bindings, because a binding watches in the name of a script.
constexpr const char *kScriptCall = "on_preempt";

// Returns the set of the named signals; SIGTERM if no signal is named. Raises YOKE_E_VALUE for NULL, and for a name
// that is no signal. `said` is the call as messages have it.
SignalSet signals_of(const char *const *names, int64_t count, const char *call, const char *said)
{
    SignalSet signals = 0;
    for (const char *const &name : need_list(names, count, call, "signals")) {
        if (!name)
            fail(YOKE_E_VALUE, "%s: item %td of argument 'signals' is NULL; give names of signals",
                 said, &name - names);
        signals |= set_of(signal_number(name, said));
    }
    return signals ? signals : set_of(signal_number("TERM", said));
}

void check_known(bool known, int64_t id, const char *call)
{
    if (!known)
        fail(
            YOKE_E_VALUE,
            "%s: argument 'id' is %lld; it must be the number of a watch that this process added and has not removed",
            short_name(call), static_cast<long long>(id));
}

}  // namespace

yoke_status yoke_preempt_watch(const char *const *signals, int64_t count)
{
    constexpr const char *call = "yoke_preempt_watch";
    return guard(call,
                 [&] { watch_for_program(signals_of(signals, count, call, short_name(call))); });
}

int32_t yoke_preempted(void)
{
    return guard_value("yoke_preempted", int32_t{0},
                       [] { return int32_t{told_signal(kProgramWatch)}; });
}

yoke_status yoke_preempt_add(const char *const *signals, int64_t count, int64_t *id)
{
    constexpr const char *call = "yoke_preempt_add";
    return guard(call, [&] {
        int64_t &place = need(id, call, "id");
        place = add_watch(signals_of(signals, count, call, kScriptCall));
    });
}

int32_t yoke_preempt_signal(int64_t id)
{
    return guard_value("yoke_preempt_signal", int32_t{0}, [&] { return int32_t{told_signal(id)}; });
}

int32_t yoke_preempt_number(const char *name)
{
    constexpr const char *call = "yoke_preempt_number";
    return guard_value(call, int32_t{0}, [&] {
        return int32_t{signal_number(&need(name, call, "name"), kScriptCall)};
    });
}

yoke_status yoke_preempt_resume(int64_t id)
{
    constexpr const char *call = "yoke_preempt_resume";
    return guard(call, [&] { check_known(answer_signal(id, Answer::kResume), id, call); });
}

yoke_status yoke_preempt_clear(int64_t id)
{
    constexpr const char *call = "yoke_preempt_clear";
    return guard(call, [&] { check_known(answer_signal(id, Answer::kClear), id, call); });
}

yoke_status yoke_preempt_unwatch(int64_t id)
{
    constexpr const char *call = "yoke_preempt_unwatch";
    return guard(call, [&] { check_known(end_watch(id), id, call); });
}
