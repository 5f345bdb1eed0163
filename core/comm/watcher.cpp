#include "core/comm/watcher.h"

#include "core/comm/group.h"

namespace yoke {

namespace {

void tell_one(const std::shared_ptr<GroupLink> &link, const PeerEvent &event)
{
    const std::lock_guard lock(link->mutex);
    if (link->group) link->group->hear(event);
}

}  // namespace

void Watcher::watch(const std::shared_ptr<GroupLink> &link)
{
    std::map<int32_t, PeerEvent> missing;
    {
        const std::lock_guard lock(mutex_);
        std::erase_if(links_, [](const auto &each) { return each.expired(); });
        links_.push_back(link);
        missing = missing_;
    }
    for (const auto &[rank, event] : missing) tell_one(link, event);
}

bool Watcher::misses_any()
{
    const std::lock_guard lock(mutex_);
    return !missing_.empty();
}

void Watcher::tell(const PeerEvent &event)
{
    std::vector<std::weak_ptr<GroupLink>> links;
    {
        const std::lock_guard lock(mutex_);
        if (event.kind == PeerEvent::kJoined || event.kind == PeerEvent::kHeard)
            missing_.erase(event.rank);
        else if (event.kind != PeerEvent::kRefused)
            missing_.insert_or_assign(event.rank, event);
        links = links_;
    }
    for (const std::weak_ptr<GroupLink> &each : links)
        if (const std::shared_ptr<GroupLink> link = each.lock()) tell_one(link, event);
}

}  // namespace yoke
