// watcher.h: what a process's groups hear of the connections to where their ranks met.
#pragma once

#include "core/base/fork.h"
#include "core/base/store_peer.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace yoke {

class Group;

// By which threads that may outlive a group reach it, as long as it lives. Who tells a group of a loss has it publish a
// cause, which comes back to the group in the same thread where that keeps the table.
struct GroupLink {
    std::recursive_mutex mutex;
    Group *group = nullptr;
};

// Told of connections, from before there is a group, which learns at its beginning who has gone.
class Watcher {
public:
    void watch(const std::shared_ptr<GroupLink> &link);
    void tell(const PeerEvent &event);
    // Whether one of them is not heard, or has gone.
    bool misses_any();

private:
    Mutex mutex_{LockRank::kOther};
    std::vector<std::weak_ptr<GroupLink>> links_;
    std::map<int32_t, PeerEvent> missing_;  // by rank: the last news of those that are not heard
};

}  // namespace yoke
