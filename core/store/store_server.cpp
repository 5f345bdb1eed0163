#include "core/store/store_server.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/log.h"
#include "core/store/store_refusal.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace yoke {

std::shared_ptr<StoreServer> StoreServer::open(Socket listening, PeerOptions options)
{
    // The watch shares in the server, so the count of the handle alone tells when nobody wants to be served any more.
    std::shared_ptr<StoreServer> server(new StoreServer(std::move(listening), std::move(options)));
    server->start();
    StoreServer *const served = server.get();
    return {served, [held = std::move(server)](StoreServer *) mutable {
                held->close();
                held.reset();  // weak handles do not keep the table
            }};
}

StoreServer::StoreServer(Socket listening, PeerOptions options)
    : listening_(std::move(listening)),
      options_(std::move(options)),
      table_(std::make_shared<HashStore>("rank 0 (" + options_.about + ")"))
{
}

// Starts the watch. The spare descriptor is released after the watch has its own, so the first rank can connect.
void StoreServer::start()
{
    constexpr double kLongestTick = 0.5;  // time limit for a stranger to name its rank
    Socket spare = Socket::adopt([this] { return fcntl(listening_.fd(), F_DUPFD_CLOEXEC, 0); });
    try {
        watched_ = watch(shared_from_this(), listening_.fd(), EPOLLIN,
                         Channel::tick_of(options_.silence_s, kLongestTick));
    } catch (const std::exception &error) {
        turn_away({listening_.fd(), {}}, options_.size - 1, options_, error.what());
        throw;
    }
}

void StoreServer::close() noexcept
{
    unwatch(watched_);
    turn_away_rest();
    listening_.close();
    Connections last;
    {
        const std::lock_guard lock(mutex_);
        last.swap(connections_);
    }
    for (const auto &connection : last) {
        connection->say_bye();
        connection->stop();
    }
    settle_watch();  // a connection that has just ended may still report its end
}

void StoreServer::leave_newcomers() noexcept
{
    leaves_newcomers_.store(true);
    rewatch(watched_, 0);
}

void StoreServer::on_ready(uint32_t) noexcept
{
    if (leaves_newcomers_.load()) return rewatch(watched_, 0);  // a tick may have come between
    Socket socket = listening_.accept();
    const int error = errno;
    if (socket.present()) {
        short_since_.reset();
        return receive(std::move(socket));
    }
    is_paused_ = is_shortage(error);
    if (!is_paused_) return;
    note_shortage(strerror(error));
    rewatch(watched_, 0);
}

// Logs once that no connection can be accepted. If the shortage lasts more than a second and the job is incomplete,
// reports kShort to the observer, once. The shortage may end soon, if connections are only slow to end.
void StoreServer::note_shortage(const char *what)
{
    constexpr auto kToRecover = std::chrono::seconds(1);
    const auto now = Deadline::Clock::now();
    if (!short_since_)
        log(LogLevel::kWarn,
            "the store of rank 0 cannot accept connections now: %s; check ulimit -n", what);
    const auto since = short_since_.value_or(now);
    short_since_ = since;
    if (now - since < kToRecover || is_complete() || !told_shortage_.empty()) return;
    told_shortage_ = format(
        "the system has no descriptor for the connection of another rank: %s; check ulimit -n",
        what);
    tell(PeerEvent::kShort, options_.rank, options_.about, told_shortage_);
}

// Refuses the ranks that were not accepted, before the port closes, because these ranks cannot read the store. Does
// so only after a reported shortage. The number of these ranks is unknown: a rank may have come twice.
void StoreServer::turn_away_rest() noexcept
{
    if (told_shortage_.empty() || is_complete() || leaves_newcomers_.load() ||
        !listening_.present())
        return;
    turn_away({listening_.fd(), {}}, options_.size - 1, options_, told_shortage_);
}

void StoreServer::receive(Socket socket)
try {
    const auto connection = std::make_shared<Connection>(*this, std::move(socket));
    size_t strangers = 0;
    {
        const std::lock_guard lock(mutex_);
        connections_.push_back(connection);
        strangers = connections_.size() - count_ranks();
    }
    drop_oldest_stranger(strangers);
    connection->start();
} catch (const std::exception &error) {
    log(LogLevel::kWarn, "the store of rank 0 dropped a connection after an error: %s",
        error.what());
}

// Drops the oldest stranger if there are more than 64 strangers beside the job's size. All ranks of a job may come at
// once; with more strangers, the oldest is no rank of the job.
void StoreServer::drop_oldest_stranger(size_t strangers)
{
    constexpr size_t kSpare = 64;
    if (strangers <= kSpare + static_cast<size_t>(options_.size)) return;
    for (const auto &connection : all())
        if (connection->rank() == Connection::kStranger)
            return end(*connection, PeerEvent::kEnded, "too many peers sent no greeting");
}

void StoreServer::on_tick(double late_s) noexcept
{
    if (std::exchange(is_paused_, false) && !leaves_newcomers_.load()) rewatch(watched_, EPOLLIN);
    for (const auto &connection : all()) {
        if (connection->is_overrun())
            end(*connection, PeerEvent::kEnded,
                "the peer did not read the answers to its requests");
        else if (connection->rank() != Connection::kStranger)
            look_for_silence(*connection, late_s);
        else if (connection->age_s() > options_.greeting_s)
            end(*connection, PeerEvent::kEnded, "the peer sent no greeting in time");
    }
}

void StoreServer::look_for_silence(Connection &connection, double late_s)
{
    const auto news = connection.look_for_silence(options_.silence_s, late_s);
    if (news) tell(news->kind, connection.rank(), connection.about(), "", news->silent_s);
}

std::shared_ptr<Connection> StoreServer::other_of(const Connection &connection, int32_t rank)
{
    for (const auto &other : all())
        if (other.get() != &connection && other->rank() == rank) return other;
    return nullptr;
}

std::string StoreServer::admit(Connection &connection, int32_t rank, const std::string &about)
{
    const std::shared_ptr<Connection> other = other_of(connection, rank);
    const std::string &first = rank == options_.rank ? options_.about : other ? other->about() : "";
    if (other && first == about) {  // the end of a former attempt is not visible yet
        connection.be_rank(rank, about);
        return end(*other, PeerEvent::kLeft, ""), "";
    }
    if (other || rank == options_.rank) {
        const std::string why =
            format("two processes have rank %d: %s and %s; give each process its own rank", rank,
                   first.c_str(), about.c_str());
        tell(PeerEvent::kRefused, rank, about, why);
        return why;
    }
    connection.be_rank(rank, about);
    met_.insert(about);
    tell(PeerEvent::kJoined, rank, about, connection.address());
    return "";
}

void StoreServer::end(Connection &connection, PeerEvent::Kind kind, const std::string &how) noexcept
{
    const std::shared_ptr<Connection> kept = connection.shared_from_this();
    connection.stop();
    const int32_t rank = connection.rank();
    {
        const std::lock_guard lock(mutex_);
        if (connections_.remove(kept) == 0)
            return;  // the rank answers close()'s goodbye message by closing
        gone_ += rank != Connection::kStranger;
        left_.notify_all();
    }
    if (rank == Connection::kStranger)
        log_dropped(connection, how);
    else if (!other_of(connection, rank))
        tell(kind, rank, connection.about(), how);
}

void StoreServer::log_dropped(const Connection &connection, const std::string &how)
{
    if (!connection.is_former()) return log_stranger(connection, how);
    log(LogLevel::kInfo,
        "the store of rank 0 refused a rank that has left this job, and the rank must try again: %s",
        connection.address().c_str());
}

// Logs a dropped stranger, at most once a minute for each reason, with the number of drops since. A rank that waits
// for its own job comes again and again.
void StoreServer::log_stranger(const Connection &connection, const std::string &how)
{
    constexpr auto kPause = std::chrono::minutes(1);
    constexpr size_t kMost = 64;
    if (logged_.size() >= kMost) logged_.clear();
    const auto now = Deadline::Clock::now();
    const auto [known, is_new] = logged_.try_emplace(how, Logged{now});
    if (!is_new && now - known->second.at < kPause) {
        ++known->second.untold;
        return;
    }
    const size_t untold = std::exchange(known->second, Logged{now}).untold;
    const std::string more = untold ? format(" (and %zu before)", untold) : "";
    log(LogLevel::kWarn,
        "the store of rank 0 dropped a connection from %s%s, which is not from a rank of this job: %s",
        connection.address().c_str(), more.c_str(), how.c_str());
}

bool StoreServer::has_met(const std::string &about) const
{
    return about == options_.about || met_.contains(about);
}

StoreServer::Connections StoreServer::all()
{
    const std::lock_guard lock(mutex_);
    return connections_;
}

size_t StoreServer::count_ranks() const
{
    size_t count = 0;
    for (const auto &connection : connections_)
        count += connection->rank() != Connection::kStranger;
    return count;
}

std::string StoreServer::reached_at()
{
    std::string reached;
    for (const auto &connection : all())
        if (connection->rank() != Connection::kStranger &&
            (reached.empty() || !connection->is_local()))
            reached = connection->reached_at();
    return reached;
}

bool StoreServer::wait_until_left(Deadline deadline, int32_t at_least)
{
    std::unique_lock lock(mutex_);
    return left_.wait_until(lock, deadline.at(), [&] {
        return gone_ >= at_least && std::ranges::none_of(connections_, [this](const auto &each) {
                   return is_awaited(*each);
               });
    });
}

bool StoreServer::is_awaited(const Connection &connection) const
{
    const int32_t rank = connection.rank();
    return rank != Connection::kStranger && !excused_.contains(rank);
}

void StoreServer::excuse(const std::vector<int32_t> &ranks)
{
    const std::lock_guard lock(mutex_);
    excused_.insert(ranks.begin(), ranks.end());
    left_.notify_all();
}

void StoreServer::expect_all()
{
    const std::lock_guard lock(mutex_);
    excused_.clear();
}

void StoreServer::tell(PeerEvent::Kind kind, int32_t rank, const std::string &about,
                       const std::string &how, double silent_s)
{
    if (options_.observer) options_.observer({kind, rank, silent_s, about, how});
}

}  // namespace yoke
