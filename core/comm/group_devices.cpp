// Calls of a group on tensors of a device, which the host's engine has staged (core/comm/staging.h).
#include "core/base/error.h"
#include "core/comm/group.h"

namespace yoke {

// Before the call has a number: what fails here the other ranks are not told of, but for a lost device.
void Group::stage(Collective &call)
{
    {
        std::unique_lock lock = lock_here();
        check_usable(lock, call.name());
    }
    try {
        call.staged->begin(call.in, call.out);
    } catch (const Error &error) {
        if (error.status() != YOKE_E_DEVICE_LOST) throw;
        fail_alone(call.name(),
                   {error.status(), format("%s: %s failed: %s", call.name(),
                                           yoke::describe(members_.self()).c_str(), error.what())});
    }
}

void Group::begin_staged(Pending &pending)
{
    const Staged &staged = *pending.call.staged;
    try {
        if (!staged.wait_until_read(pending.deadline, [this] { return is_failed(); }) &&
            !is_failed())
            fail(YOKE_E_TIMEOUT, "%s did not end in time what it was given before the call",
                 staged.device().name.c_str());
    } catch (const Error &error) {
        fail_alone(error.status(), error.what(), pending);
    }
    if (std::unique_lock lock(mutex_); cause_) raise_cause(lock, pending.call.name());
    pending.in = staged.in();
    pending.out = staged.out();
}

void Group::end_staged(Pending &pending)
{
    Staged &staged = *pending.call.staged;
    try {
        staged.bring_back(pending.call.out, pending.call.name(), std::move(pending.in_use));
        if (!pending.work.present()) staged.follow();
    } catch (const Error &error) {
        fail_alone(error.status(), error.what(), pending);
    }
}

}  // namespace yoke
