#include "core/comm/living_groups.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/comm/group.h"
#include "core/rendezvous/watcher.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace yoke {

namespace {

// A group that lives as long as its link knows it.
struct Known {
    std::weak_ptr<GroupLink> link;
    Group *group;
};
struct Living {
    Mutex mutex{LockRank::kOther};
    std::vector<Known> groups;
    int lingering = 0;  // groups of this process
    pid_t process = 0;
    std::condition_variable_any changed;
};
Living &living = immortal<Living>();

void await_lingering()
{
    std::unique_lock lock(living.mutex);
    if (living.process != getpid()) return;
    living.changed.wait(lock, [] { return living.lingering == 0; });
}

std::vector<Known> living_groups()
{
    const std::lock_guard lock(living.mutex);
    return living.groups;
}

// Calls act(group) where the group lives, which it does meanwhile; false where it does not.
template <class F>
bool with_group(const Known &known, const F &act)
{
    const std::shared_ptr<GroupLink> link = known.link.lock();
    if (!link) return false;
    const std::lock_guard lock(link->mutex);
    if (!link->group || !known.group->is_here()) return false;
    act(*known.group);
    return true;
}

void leave_living_group(const Known &known, Deadline deadline)
{
    constexpr std::chrono::milliseconds kLook{1};
    bool is_pending = true, is_held = true;
    while (is_pending && !(is_held && deadline.has_passed())) {
        const bool lives = with_group(known, [&](Group &group) {
            is_pending = group.end_pending();
            is_held = !group.is_lingering();
        });
        if (!lives) return;
        if (is_pending) std::this_thread::sleep_for(kLook);
    }
    with_group(known, [](Group &group) { group.leave(); });
}

}  // namespace

void note_living(const std::shared_ptr<GroupLink> &link, Group &group)
{
    const std::lock_guard lock(living.mutex);
    std::erase_if(living.groups, [](const Known &each) { return each.link.expired(); });
    living.groups.push_back({link, &group});
}

void note_lingering() noexcept
{
    const std::lock_guard lock(living.mutex);
    if (std::exchange(living.process, getpid()) != getpid()) living.lingering = 0;
    ++living.lingering;
}

void note_lingering_ended() noexcept
{
    const std::lock_guard lock(living.mutex);
    --living.lingering;
    living.changed.notify_all();
}

void leave_living_groups() noexcept
try {
    constexpr double kToEnd = 5;  // seconds, of what was begun
    const Deadline deadline = Deadline::after(kToEnd);
    for (const Known &each : living_groups()) leave_living_group(each, deadline);
    await_lingering();
} catch (const std::bad_alloc &) {  // the others see its connections end
}

}  // namespace yoke
