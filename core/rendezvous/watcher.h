// watcher.h: news of the connections to the rendezvous, for the groups of a process.
#pragma once

#include "core/base/fork.h"
#include "core/rendezvous/cause.h"
#include "core/store/store.h"
#include "core/store/store_peer.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace yoke {

// Interface by which a group receives news of its ranks.
class PeerListener {
public:
    // Receives news of a connection from the watcher.
    virtual void hear(const PeerEvent &event) noexcept = 0;
    virtual void fail_with(const Cause &cause) noexcept = 0;

protected:
    ~PeerListener() = default;
};

// Link by which threads that may outlive a group reach it while the group lives. News of a loss make the group
// publish a cause. If the same thread serves the store, the cause comes back to the group within this call, so the
// mutex is recursive.
struct GroupLink {
    std::recursive_mutex mutex;
    PeerListener *group = nullptr;
};

// Fails a group with this cause after some seconds, in the watch thread, if the group still lives.
void tell_later(const std::shared_ptr<GroupLink> &link, double seconds, Cause cause);

// Watcher of connections, which begins before a group exists. A new group learns at its beginning of the ranks that
// have gone.
class Watcher {
public:
    void watch(const std::shared_ptr<GroupLink> &link);
    void tell(const PeerEvent &event);
    // Publishes news of missing ranks in this store, from now on and for ranks that are missing already. All ranks
    // share the store; only rank 0's process sees all connections. The other ranks call listen(), and receive the
    // news as long as watcher and store live.
    void tell_in(const std::shared_ptr<Store> &store);
    static void listen(const std::shared_ptr<Watcher> &watcher,
                       const std::shared_ptr<Store> &store);
    // Returns whether a rank misses heartbeats or has gone.
    bool misses_any();
    bool still_misses(int32_t rank);

private:
    void tell_others(const PeerEvent &event) noexcept;

    Mutex mutex_{LockRank::kOther};
    std::vector<std::weak_ptr<GroupLink>> links_;
    std::weak_ptr<Store> store_;            // where news for other ranks are published
    uint64_t told_ = 0;                     // number of published news
    std::map<int32_t, PeerEvent> missing_;  // by rank: the last news of a missing rank
};

}  // namespace yoke
