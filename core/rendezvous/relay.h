// relay.h: where news of connections go. Until all ranks are there, bad news keep the job from starting. Later, the
// news go to the group's watcher.
#pragma once

#include "core/store/store.h"
#include "core/store/store_peer.h"

#include <mutex>
#include <vector>

namespace yoke {

class Relay {
public:
    explicit Relay(PeerObserver later) : later_(std::move(later)) {}
    // Sets the store in which rank 0 publishes why the job cannot start. Earlier bad news go there at once.
    void begin(const std::shared_ptr<Store> &store);
    void tell(const PeerEvent &event);
    // Passes the news so far on to the later observer, in order, until there are no more. Then marks that all ranks
    // are there, so further news go to the observer at once.
    void complete();

private:
    std::mutex mutex_;
    PeerObserver later_;
    std::weak_ptr<Store> store_;
    bool is_complete_ = false;
    std::vector<PeerEvent> told_;
};

}  // namespace yoke
