// What groups do that still live as their process ends: something holds them, as a script that calls exit, or a thread
// that Python does not wait for; or they linger.
#include "core/base/immortal.h"
#include "core/comm/ending.h"
#include "core/comm/group.h"
#include "core/rendezvous/watcher.h"

#include <chrono>
#include <condition_variable>
#include <thread>

namespace yoke {

namespace {

struct Living {
    Mutex mutex{LockRank::kOther};
    std::vector<std::weak_ptr<GroupLink>> links;
    int lingering = 0;  // groups of this process
    pid_t process = 0;
    std::condition_variable_any changed;
};
Living &living = immortal<Living>();

void note_lingering()
{
    const std::lock_guard lock(living.mutex);
    if (std::exchange(living.process, getpid()) != getpid()) living.lingering = 0;
    ++living.lingering;
}

void await_lingering()
{
    std::unique_lock lock(living.mutex);
    if (living.process != getpid()) return;
    living.changed.wait(lock, [] { return living.lingering == 0; });
}

std::vector<std::weak_ptr<GroupLink>> living_links()
{
    const std::lock_guard lock(living.mutex);
    return living.links;
}

// act(group) where it lives, which it does meanwhile; false where it does not.
template <class F>
bool with_group(const std::weak_ptr<GroupLink> &known, const F &act)
{
    const std::shared_ptr<GroupLink> link = known.lock();
    if (!link) return false;
    const std::lock_guard lock(link->mutex);
    auto *const group = static_cast<Group *>(link->group);
    if (!group || !group->is_here()) return false;
    act(*group);
    return true;
}

}  // namespace

void note_living(const std::shared_ptr<GroupLink> &link)
{
    const std::lock_guard lock(living.mutex);
    std::erase_if(living.links, [](const auto &each) { return each.expired(); });
    living.links.push_back(link);
}

bool Group::is_lingering() const noexcept
{
    const std::lock_guard lock(mutex_);
    return is_lingering_;
}

bool Group::lingers() noexcept
{
    const std::lock_guard lock(mutex_);
    const bool is_served = thread_.joinable() && thread_.get_id() != std::this_thread::get_id();
    if (!may_linger_ || !is_served || (queue_.empty() && !is_running_) || !ending().empty())
        return false;
    note_lingering();
    is_lingering_ = is_leaving_ = true;
    return true;
}

// In its own thread, when all is done.
void Group::end_lingering() noexcept
{
    delete this;
    const std::lock_guard lock(living.mutex);
    --living.lingering;
    living.changed.notify_all();
}

void leave_living_group(const std::weak_ptr<GroupLink> &link, Deadline deadline)
{
    constexpr std::chrono::milliseconds kLook{1};
    bool is_pending = true, is_held = true;
    while (is_pending && !(is_held && deadline.has_passed())) {
        const bool lives = with_group(link, [&](Group &group) {
            if (group.has_pending()) group.fail_as_ended();
            is_pending = group.has_pending();
            is_held = !group.is_lingering();
        });
        if (!lives) return;
        if (is_pending) std::this_thread::sleep_for(kLook);
    }
    with_group(link, [](Group &group) { group.leave_for_good(); });
}

void leave_living_groups() noexcept
try {
    constexpr double kToEnd = 5;  // seconds, of what was begun
    const Deadline deadline = Deadline::after(kToEnd);
    for (const std::weak_ptr<GroupLink> &each : living_links()) leave_living_group(each, deadline);
    await_lingering();
} catch (const std::bad_alloc &) {  // the others see its connections end
}

void Group::leave_for_good() noexcept
{
    say_left();
    std::shared_ptr<Engine> engine;
    {
        const std::lock_guard lock(mutex_);
        engine = engine_;
    }
    if (engine) engine->leave();
}

}  // namespace yoke
