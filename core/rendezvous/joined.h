// joined.h: the ranks that join a possible leader of a shrunk group.
#pragma once

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/rendezvous/watcher.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace yoke {

// Ranks connected to this rank's own store.
class Joined {
public:
    explicit Joined(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}

    void tell(const PeerEvent &event)
    {
        {
            const std::lock_guard lock(mutex_);
            if (event.kind == PeerEvent::kJoined) there_.insert(event.rank);
            if (event.kind == PeerEvent::kLeft && !event.how.empty() && refusal_.empty())
                refusal_ =
                    format("rank %d (%s): %s", event.rank, event.about.c_str(), event.how.c_str());
            if (event.kind == PeerEvent::kShort) lack_ = event.how;
            if (event.kind == PeerEvent::kLeft || event.kind == PeerEvent::kEnded)
                there_.erase(event.rank);
            changed_.notify_all();
        }
        watcher_->tell(event);
    }
    void look_again()
    {
        const std::lock_guard lock(mutex_);
        changed_.notify_all();
    }
    void wait(std::chrono::duration<double> most)
    {
        std::unique_lock lock(mutex_);
        (void)changed_.wait_for(lock, most);
        check_interrupt(lock);
    }
    // Returns why a rank that called shrink cannot join; else "".
    std::string refusal() const
    {
        const std::lock_guard lock(mutex_);
        return refusal_;
    }
    // Returns why this rank's own store cannot accept another rank, such as too few descriptors; else "".
    std::string lack() const
    {
        const std::lock_guard lock(mutex_);
        return lack_;
    }
    std::set<int32_t> there() const
    {
        const std::lock_guard lock(mutex_);
        return there_;
    }

private:
    const std::shared_ptr<Watcher> watcher_;
    mutable std::mutex mutex_;
    std::condition_variable changed_;
    std::set<int32_t> there_;
    std::string refusal_, lack_;
};

}  // namespace yoke
