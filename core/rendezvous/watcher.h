// watcher.h: what a process's groups hear of the connections to where their ranks met.
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

// Group as those see it who hear of its ranks.
class PeerListener {
public:
    // News of a connection, from whoever watches them.
    virtual void hear(const PeerEvent &event) noexcept = 0;
    virtual void fail_with(const Cause &cause) noexcept = 0;

protected:
    ~PeerListener() = default;
};

// By which threads that may outlive a group reach it, as long as it lives. Who tells a group of a loss has it publish a
// cause, which comes back to the group in the same thread where that keeps the table.
struct GroupLink {
    std::recursive_mutex mutex;
    PeerListener *group = nullptr;
};

// Fails a group after some seconds, in the watch thread, if it is there still. Called in that thread.
void tell_later(const std::shared_ptr<GroupLink> &link, double seconds, Cause cause);

// Told of connections, from before there is a group, which learns at its beginning who has gone.
class Watcher {
public:
    void watch(const std::shared_ptr<GroupLink> &link);
    void tell(const PeerEvent &event);
    // Rank 0's process alone hears of all. It tells the others in the store that all have, and they listen, for as long
    // as watcher and store live.
    void tell_in(const std::shared_ptr<Store> &store);
    static void listen(const std::shared_ptr<Watcher> &watcher,
                       const std::shared_ptr<Store> &store);
    // Whether one of them is not heard, or has gone.
    bool misses_any();
    bool still_misses(int32_t rank);

private:
    void tell_others(const PeerEvent &event) noexcept;

    Mutex mutex_{LockRank::kOther};
    std::vector<std::weak_ptr<GroupLink>> links_;
    std::weak_ptr<Store> store_;            // in which others are told
    uint64_t told_ = 0;                     // there
    std::map<int32_t, PeerEvent> missing_;  // by rank: the last news of those that are not heard
};

}  // namespace yoke
