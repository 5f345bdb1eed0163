// peer_news.h: what a group does when the connection to one of its ranks ends, or falls silent.
#pragma once

#include "core/comm/call_queue.h"
#include "core/comm/departures.h"
#include "core/comm/failure.h"
#include "core/comm/group_keys.h"
#include "core/rendezvous/watcher.h"

#include <memory>

namespace yoke {

// Acts in the watch thread, which the table's answers come by: so it cannot wait for one.
class PeerNews final : public PeerListener {
public:
    PeerNews(const Members &members, GroupKeys &keys, Departures &departures, Failure &failure,
             const CallQueue &calls)
        : members_(members), keys_(keys), departures_(departures), failure_(failure), calls_(calls)
    {
    }
    // Begins to hear of the ranks, and of the cause that any of them publishes. Other threads reach the group by the
    // link that this returns, until `close`.
    const std::shared_ptr<GroupLink> &open();
    void close() noexcept;
    void hear(const PeerEvent &event) noexcept override;
    void fail_with(const Cause &cause) noexcept override { failure_.fail_with(cause); }
    // Returns "; rank 0 (host a, process 7) is in barrier at train.py:17", or "".
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
