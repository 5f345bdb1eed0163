#include "yoke/work.h"

#include "capi/src/guard.h"
#include "core/base/interrupt.h"
#include "core/base/work.h"

#include <cmath>

using namespace yoke;
using namespace yoke::capi;

namespace {

// Raises YOKE_E_TIMEOUT for work not done in time. The message leaves the seconds out: for a caller that waits in
// slices, they would be the seconds of the last slice.
[[noreturn]] void fail_late(const Work &work, const char *call)
{
    if (work.of() == 0) fail(YOKE_E_TIMEOUT, "%s: timed out; the work continues", said_name(call));
    fail(YOKE_E_TIMEOUT, "%s: timed out; %llu of %llu bytes are done, and the work continues",
         said_name(call), static_cast<unsigned long long>(work.bytes()),
         static_cast<unsigned long long>(work.of()));
}

constexpr const char *kGiveWork = "give a work that a call returned";

yoke_status wait(yoke_work *work, double timeout, const char *call, bool (Work::*until)(double))
{
    return guard(call, [&] {
        const Ref<Work> held = need_ref(work, call, "work", kGiveWork);
        if (std::isnan(timeout))
            fail(YOKE_E_VALUE, "%s: argument 'timeout' is NaN; it must be a number of seconds",
                 said_name(call));
        const Interruptible waits(said_name(call));
        if (!(held.get()->*until)(timeout)) fail_late(*held.get(), call);
    });
}

}  // namespace

yoke_work *yoke_work_retain(yoke_work *work)
{
    return retain_handle(work, "yoke_work_retain");
}

void yoke_work_release(yoke_work *work)
{
    release_handle(work, "yoke_work_release");
}

yoke_status yoke_work_wait(yoke_work *work, double timeout)
{
    return wait(work, timeout, "yoke_work_wait", &Work::wait);
}

yoke_status yoke_work_follow(yoke_work *work, double timeout)
{
    return wait(work, timeout, "yoke_work_follow", &Work::follow);
}

int32_t yoke_work_done(yoke_work *work)
{
    constexpr const char *call = "yoke_work_done";
    return guard_value(call, int32_t{0},
                       [&] { return int32_t{need(work, call, "work", kGiveWork).is_done()}; });
}

yoke_status yoke_work_progress(yoke_work *work, int64_t *bytes, int64_t *of)
{
    constexpr const char *call = "yoke_work_progress";
    return guard(call, [&] {
        const Work &object = need(work, call, "work", kGiveWork);
        if (bytes) *bytes = static_cast<int64_t>(object.bytes());
        if (of) *of = static_cast<int64_t>(object.of());
    });
}
