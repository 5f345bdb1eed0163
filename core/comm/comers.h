// comers.h: the ranks that come to one that may lead a shrunk group.
#pragma once

#include "core/base/interrupt.h"
#include "core/comm/watcher.h"

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>

namespace yoke {

// Who has come to this rank's own store, and is there still.
class Comers {
public:
    explicit Comers(std::shared_ptr<Watcher> watcher) : watcher_(std::move(watcher)) {}

    void tell(const PeerEvent &event)
    {
        {
            const std::lock_guard lock(mutex_);
            if (event.kind == PeerEvent::kJoined) there_.insert(event.rank);
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
};

}  // namespace yoke
