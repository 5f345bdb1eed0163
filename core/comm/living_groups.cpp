#include "core/comm/living_groups.h"

#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/comm/group.h"
#include "core/rendezvous/watcher.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <new>
#include <thread>
#include <utility>
#include <vector>

namespace yoke {

namespace {

// Group that lives as long as its link knows it.
struct Known {
    std::weak_ptr<GroupLink> link;
    Group *group;
};
struct Living {
    Mutex mutex{LockRank::kOther};
    std::vector<Known> groups;
    int lingering = 0;                         // groups of this process
    std::atomic<bool> has_left_behind{false};  // groups with missing ranks
    pid_t process = 0;
    std::condition_variable_any changed;
};
Living &living = immortal<Living>();

constexpr std::chrono::milliseconds kLook{1};
constexpr double kToEnd = 5;  // seconds

// Waits until no more than `left` groups linger.
void await_lingering(int left)
{
    std::unique_lock lock(living.mutex);
    if (living.process != getpid()) return;
    living.changed.wait(lock, [left] { return living.lingering <= left; });
}

std::vector<Known> living_groups()
{
    const std::lock_guard lock(living.mutex);
    return living.groups;
}

// Calls act(group) if the group lives, and keeps the group alive meanwhile. Returns false if the group has ended.
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

// Number of groups whose calls on devices wait for missing ranks, and number of lingering groups among these.
struct Left {
    int all = 0, lingering = 0;
};

void leave_living_group(const Known &known, Left *left)
{
    bool is_pending = true, is_lingering = false, is_held_up = false;
    for (;;) {
        const bool lives = with_group(known, [&](Group &group) {
            is_pending = group.end_pending();
            is_lingering = group.is_lingering();
            is_held_up = group.issuer().devices().has_pending();
        });
        if (!lives) return;
        const bool is_bounded = !is_lingering || is_held_up;
        if (!is_pending || (is_bounded && deadline_of_exit().has_passed())) break;
        std::this_thread::sleep_for(kLook);
    }
    with_group(known, [](Group &group) { group.leave(); });
    if (!is_pending || !is_held_up) return;
    ++left->all;
    left->lingering += is_lingering;
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

Deadline deadline_of_exit() noexcept
{
    static const Deadline deadline = Deadline::after(kToEnd);
    return deadline;
}

bool has_left_groups_behind() noexcept
{
    return living.has_left_behind;
}

bool is_held_up(Group &group, Deadline deadline) noexcept
{
    while (group.issuer().devices().has_pending() && !deadline.has_passed()) {
        (void)group.end_pending();
        std::this_thread::sleep_for(kLook);
    }
    return group.issuer().devices().has_pending();
}

bool leave_living_groups() noexcept
try {
    Left left;
    for (const Known &each : living_groups()) leave_living_group(each, &left);
    await_lingering(left.lingering);
    if (left.all > 0) living.has_left_behind = true;
    return !living.has_left_behind;
} catch (const std::bad_alloc &) {  // the other ranks see its connections end
    return true;
}

}  // namespace yoke
