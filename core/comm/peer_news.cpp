#include "core/comm/peer_news.h"

#include "core/base/error.h"

#include <algorithm>
#include <new>

namespace yoke {

namespace {

bool is_end(const PeerEvent &event)
{
    return event.kind == PeerEvent::kEnded || event.kind == PeerEvent::kLeft;
}

}  // namespace

std::string PeerNews::describe_running() const
{
    const std::string running = calls_.describe_running();
    return running.empty() ? "" : "; " + describe(members_.self()) + " is in " + running;
}

const std::shared_ptr<GroupLink> &PeerNews::open()
{
    link_ = std::make_shared<GroupLink>();
    link_->group = this;
    keys_.listen([known = std::weak_ptr<GroupLink>(link_)](const Cause &cause) {
        const std::shared_ptr<GroupLink> link = known.lock();
        if (!link) return;
        const std::lock_guard lock(link->mutex);
        if (link->group) link->group->fail_with(cause);
    });
    if (members_.watcher) members_.watcher->watch(link_);
    return link_;
}

void PeerNews::close() noexcept
{
    if (link_) {
        const std::lock_guard lock(link_->mutex);
        link_->group = nullptr;
    }
    keys_.stop_listening();
}

void PeerNews::hear(const PeerEvent &event) noexcept
{
    const auto met = std::ranges::find(members_.met_as, event.rank);
    if (met == members_.met_as.end()) return note_outsider(event);
    const RankInfo &peer = members_.ranks[static_cast<size_t>(met - members_.met_as.begin())];
    const bool has_died = event.kind == PeerEvent::kEnded;
    if (is_end(event)) failure_.note_gone(peer.rank, !has_died);
    if (event.kind == PeerEvent::kSilent)
        tell_loss(
            peer,
            cause_of(
                peer,
                format(
                    "sent no heartbeat for %.3g s (YOKE_COMM_SILENCE): the rank is stopped, or its network is down%s",
                    event.silent_s, describe_running().c_str())));
    // In a made group, calls that wait for the dead rank get the loss from the engine.
    if (has_died && failure_.is_made()) {
        dump_loss(peer);
        miss_server(peer);
    }
    if (!is_end(event) || failure_.is_made()) return;
    tell_loss(peer,
              cause_of(peer, has_died ? "died while the group was created: the connection ended"
                                      : "left while the group was created"));
}

// Writes a dump about a dead rank, if this rank is in no call. The group lives on until its next call, which may come
// after a launcher has ended this process. A rank in a call fails there, and writes a dump then.
void PeerNews::dump_loss(const RankInfo &peer) noexcept
try {
    if (failure_.is_failed() || !calls_.describe_running().empty()) return;
    failure_.dump_of(cause_of(peer, "died: the connection ended"));
} catch (const std::bad_alloc &) {
}

// Notes the end of a rank outside this group, if the rank keeps the store. Ignores other news.
void PeerNews::note_outsider(const PeerEvent &event) noexcept
{
    if (is_end(event) && event.rank == members_.met->server_rank)
        departures_.note_gone(departures_.server(), event.kind == PeerEvent::kLeft);
}

// Fails the group 0.3 s after the death of the rank that keeps the store; does nothing for other ranks. Ranks that
// wait for the dead rank cannot publish this without the store, so ranks that wait for them would wait in vain. The
// delay lets calls end that do not need the dead rank.
void PeerNews::miss_server(const RankInfo &peer) noexcept
{
    constexpr double kToEndCalls = 0.3;
    if (peer.rank != departures_.server() || members_.met->server) return;
    tell_later(link_, kToEndCalls, cause_of(peer, "died: the connection ended"));
}

// Publishes the loss of a rank and fails the group. If the store takes the cause, the group fails with the standing
// cause, or with this cause if no cause arrives in a second. If the lost rank keeps the store, or the store does not
// take the cause, the group fails at once. All ranks that lose the same rank publish the same cause.
void PeerNews::tell_loss(const RankInfo &peer, const Cause &cause) noexcept
{
    constexpr double kToHearCause = 1;
    if (members_.met && members_.met->server) return failure_.fail(cause);
    const bool is_offered = keys_.offer(cause);
    const bool is_server =
        peer.rank == departures_.server();  // if only stopped, it gets the offered cause later
    const bool is_told_later = is_offered && !is_server && GroupKeys::attempt(nullptr, [&] {
                                   tell_later(link_, kToHearCause, cause);
                               });
    if (!is_told_later) failure_.fail_with(cause);
}

}  // namespace yoke
