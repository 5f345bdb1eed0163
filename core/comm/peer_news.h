// peer_news.h: a group's reaction when the connection to a rank ends, or when the rank misses its heartbeats.
#pragma once

#include "core/comm/call_queue.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/rendezvous/watcher.h"

#include <memory>

namespace yoke {

// Listener of a group. `hear` and `fail_with` run under the lock of the GroupLink, usually in the watch thread. The
// store's answers come by this thread, so `hear` cannot wait for an answer. The class has no lock of its own.
class PeerNews final : public PeerListener {
public:
    PeerNews(const Members &members, GroupKeys &keys, Departures &departures, Failure &failure,
             const CallQueue &calls)
        : members_(members), keys_(keys), departures_(departures), failure_(failure), calls_(calls)
    {
    }
    // Begins to listen for news of the ranks, and for a cause published by any of them. Returns the link by which
    // other threads reach the group until `close`.
    const std::shared_ptr<GroupLink> &open();
    void close() noexcept;
    void hear(const PeerEvent &event) noexcept override;
    void fail_with(const Cause &cause) noexcept override { failure_.fail_with(cause); }
    // Returns the call that this rank is in: "; rank 0 (host a, process 7) is in barrier at train.py:17". Returns ""
    // if no call runs.
    std::string describe_running() const;

private:
    void tell_loss(const RankInfo &peer, const Cause &cause) noexcept;
    void miss_server(const RankInfo &peer) noexcept;
    void dump_loss(const RankInfo &peer) noexcept;
    void note_outsider(const PeerEvent &event) noexcept;

    const Members &members_;
    GroupKeys &keys_;
    Departures &departures_;
    Failure &failure_;
    const CallQueue &calls_;
    std::shared_ptr<GroupLink> link_;
};

}  // namespace yoke
