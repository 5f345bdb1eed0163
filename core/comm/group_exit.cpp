// What groups do that something still holds as their process ends: a script that calls exit, a thread that Python does
// not wait for.
#include "core/base/immortal.h"
#include "core/comm/group.h"
#include "core/comm/watcher.h"

#include <chrono>
#include <thread>

namespace yoke {

namespace {

struct Living {
    Mutex mutex{LockRank::kOther};
    std::vector<std::weak_ptr<GroupLink>> links;
};
Living &living = immortal<Living>();

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
    if (!link->group || !link->group->is_here()) return false;
    act(*link->group);
    return true;
}

}  // namespace

void note_living(const std::shared_ptr<GroupLink> &link)
{
    const std::lock_guard lock(living.mutex);
    std::erase_if(living.links, [](const auto &each) { return each.expired(); });
    living.links.push_back(link);
}

void leave_living_groups() noexcept
try {
    constexpr double kToEnd = 5;  // seconds, of what was begun
    constexpr std::chrono::milliseconds kLook{1};
    const Deadline deadline = Deadline::after(kToEnd);
    for (const std::weak_ptr<GroupLink> &each : living_links()) {
        bool is_pending = true;
        while (is_pending && !deadline.has_passed()) {
            const bool lives = with_group(each, [&](Group &group) {
                if (group.has_pending()) group.fail_as_ended();
                is_pending = group.has_pending();
            });
            if (!lives) break;
            if (is_pending) std::this_thread::sleep_for(kLook);
        }
        with_group(each, [](Group &group) { group.leave_for_good(); });
    }
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
