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
    // Where rank 0 puts why the job cannot start, what was told before included.
    void begin(const std::shared_ptr<Store> &store);
    void tell(const PeerEvent &event);
    // Marks that all ranks are there. Passes on the news so far, then the news that came meanwhile.
    void complete();

private:
    std::mutex mutex_;
    PeerObserver later_;
    std::weak_ptr<Store> store_;
    bool is_complete_ = false;
    std::vector<PeerEvent> told_;
};

}  // namespace yoke
