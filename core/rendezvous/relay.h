// relay.h: what becomes of news of connections: until all ranks are there it keeps the job from starting, later it goes
// to whoever watches the group.
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
    // All are there; what was told before is told again, and what comes meanwhile after it.
    void complete();

private:
    std::mutex mutex_;
    PeerObserver later_;
    std::weak_ptr<Store> store_;
    bool is_complete_ = false;
    std::vector<PeerEvent> told_;
};

}  // namespace yoke
