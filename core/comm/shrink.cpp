#include "core/comm/shrink.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/base/start_thread.h"
#include "core/comm/group.h"
#include "core/launch/error_file.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <new>
#include <thread>
#include <utility>

namespace yoke {

namespace {

// Action after some time, unless the scope ends before. If the system gives no thread, the action runs at once.
class DelayedCall {
public:
    DelayedCall(double seconds, const std::function<void()> &act)
    {
        const auto wait = [this, seconds, act] {
            std::unique_lock lock(mutex_);
            const std::chrono::duration<double> most(seconds);
            if (!ended_.wait_for(lock, most, [this] { return is_over_; })) act();
        };
        if (!start_thread(thread_, wait).empty()) act();
    }
    ~DelayedCall()
    {
        {
            const std::lock_guard lock(mutex_);
            is_over_ = true;
            ended_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }
    DelayedCall(const DelayedCall &) = delete;
    DelayedCall &operator=(const DelayedCall &) = delete;

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool is_over_ = false;
    std::thread thread_;
};

}  // namespace

Shrink::Shrink(const Members &members, const GroupOptions &options, const GroupKeys &keys,
               const Departures &departures, Failure &failure, StoreCall &store_call)
    : members_(members),
      options_(options),
      keys_(keys),
      departures_(departures),
      failure_(failure),
      store_call_(store_call)
{
}

void Shrink::check_not_shrunk() const
{
    const std::lock_guard lock(mutex_);
    if (is_shrunk_)
        fail(YOKE_E_STATE,
             "shrink: this group was already shrunk; use the group that the first shrink returned");
    if (has_left_)
        fail(
            YOKE_E_STATE,
            "shrink: an earlier shrink of this rank was interrupted, and the other ranks go on without it; call init to make another group");
}

Ref<Group> Shrink::run(double seconds)
{
    const Deadline deadline = Deadline::after(seconds);
    const StoreCall::Scope scope(store_call_, "shrink");
    Members members = reunite(deadline);
    end_group(seconds);
    failure_.silence_devices();  // else devices would fail calls of the new group
    const Ref<Group> made = make_of(members, deadline);
    if (!ports_.present()) go_on_as_threads(members_, members);
    warn_of_absent(members.met_as);  // only now, because the former store may not answer
    take_back_told();
    // All members of the new group know of the old group's end by now, and have released its calls.
    if (members_.met) go_on_from(*members_.met, members_.met_as);
    const std::lock_guard lock(mutex_);
    is_shrunk_ = true;
    return made;
}

// Waits for the living ranks, and returns the members of the new group. Waits only part of the time, because the
// joined ranks must still make their group. If the wait lasts, ends the former group after a delay.
Members Shrink::reunite(Deadline deadline)
{
    constexpr double kForRanks = 0.75;
    const Deadline there = deadline.within(kForRanks * deadline.given_s());
    // A rank may be leaving the call before, which should not fail, so the group ends only after a delay. But a rank
    // in a call that waits for this rank comes only after the group's end.
    constexpr double kMost = 1;
    const double seconds = deadline.given_s();
    const DelayedCall later(std::min(kMost, seconds / 4), [&] { end_group(seconds); });
    try {
        if (ports_.present()) return reunite_processes(members_, ports_, there, deadline);
        return reunite_threads(members_, ++attempts_, there);
    } catch (const Interrupted &) {
        if (!ports_.present())
            leave_threads(members_, attempts_,
                          cause_of(std::current_exception(), members_.self(), "shrink"));
        const std::lock_guard lock(mutex_);
        has_left_ = true;
        ports_ = {};  // the other ranks then find no rank there
        throw;
    }
}

// Fails the group as ended by shrink; does nothing in a failed group. The rank that keeps the store may have stopped,
// so the wait for the store is short. Most of the time is for ranks that answer.
void Shrink::end_group(double seconds) noexcept
{
    constexpr double kMost = 1;
    if (failure_.is_failed()) return;
    failure_.fail(
        {YOKE_E_CANCELLED, "the group was ended by shrink() on " + describe(members_.self()), true},
        std::min(kMost, seconds / 8));
}

// Makes the new group. A joined rank may have stopped since, so after a failure the next try does not wait for it.
Ref<Group> Shrink::make_of(const Members &living, Deadline deadline) const
try {
    return Group::make(living, options_, deadline, "shrink");
} catch (...) {
    if (living.met) give_up(living.met);
    throw;
}

// Logs a warning for each rank left out because its call of shrink was refused: such a rank may not know that the
// others miss it. The group is made by now, so missing memory must not end the call.
void Shrink::warn_of_absent(const std::vector<int32_t> &present) const
try {
    std::vector<int32_t> absent;
    for (int32_t each = 0; each < members_.size(); ++each)
        if (!std::ranges::count(present, each) && !departures_.has_gone(each))
            absent.push_back(each);
    const std::vector<std::string> told = keys_.refusals_of(absent, Refused::kShrink, 0);
    for (size_t i = 0; i < absent.size(); ++i)
        if (!told[i].empty())
            log(LogLevel::kWarn,
                "shrink: the other ranks go on without %s, whose call was refused: %s",
                describe(members_.at(absent[i])).c_str(), told[i].c_str());
} catch (const std::bad_alloc &) {
    log(LogLevel::kWarn, "shrink: not enough memory to report whose call was refused");
}

}  // namespace yoke
