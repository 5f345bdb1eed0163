// store_server.h: the store of rank 0, served to the other ranks over TCP.
//
// A rank's connection is its heartbeat, too. If the connection ends without a goodbye message, the rank has died. If
// no byte arrives for `silence_s`, the rank or its network has stopped. Both sides notice: rank 0 for every rank,
// each rank for rank 0. The process's watch thread (core/store/watch.h) does all this work.
//
// A connection that has not named the job's cookie gets some KiB of memory at most, for a few seconds. A connection
// with another protocol is dropped and logged. The pending requests of a known rank are bounded as well.
#pragma once

#include "core/store/store_connection.h"
#include "core/store/store_peer.h"

#include <condition_variable>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace yoke {

class StoreServer final : public Watched, public std::enable_shared_from_this<StoreServer> {
public:
    // Starts a server on a socket that listens, and returns a handle. The last handle's destructor calls close(), so
    // it must not run in the watch thread. Raises if the watch cannot start, after a notice to the other ranks.
    static std::shared_ptr<StoreServer> open(Socket listening, PeerOptions options);

    // Sends the goodbye message to all ranks, ends their connections and releases the port. Must not run in the watch
    // thread.
    void close() noexcept;
    // Returns the store, for rank 0 itself, even after close().
    const std::shared_ptr<HashStore> &table() const noexcept { return table_; }
    SocketAddress address() const { return listening_.local(); }
    // Refuses later ranks from now on: the job has all its ranks.
    void close_to_newcomers() noexcept { is_complete_.store(true); }
    bool is_complete() const noexcept { return is_complete_.load(); }
    // Accepts no more connections from now on: later ranks wait for the next server at this port.
    void leave_newcomers() noexcept;
    // Returns this machine's address as ranks have reached it, preferably ranks of other machines. Returns "" if no
    // rank is connected.
    std::string reached_at();
    // Waits until every joined rank that is not excused has left or died, and at least `at_least` ranks have. Returns
    // false if the deadline passes before.
    bool wait_until_left(Deadline deadline, int32_t at_least = 0);
    // Excuses ranks that have gone on to another store: wait_until_left does not wait for these ranks, which may stay
    // connected. expect_all() ends this.
    void excuse(const std::vector<int32_t> &ranks);
    void expect_all();

    // Accepts a connection. This function and the next functions run in the watch thread.
    void on_ready(uint32_t events) noexcept override;
    void on_tick(double late_s) noexcept override;
    const PeerOptions &options() const noexcept { return options_; }
    // Returns whether a process of this description was a rank here.
    bool has_met(const std::string &about) const;
    // Makes a stranger's connection a rank and returns "". Returns the reason, and reports kRefused, if another
    // process is this rank already. If the same process connects again, ends its older connection.
    std::string admit(Connection &connection, int32_t rank, const std::string &about);
    void tell(PeerEvent::Kind kind, int32_t rank, const std::string &about, const std::string &how,
              double silent_s = 0);
    // Ends a connection, and reports the end of a rank to the observer; `how` is for people. Logs the drop of a
    // stranger.
    void end(Connection &connection, PeerEvent::Kind kind, const std::string &how) noexcept;

private:
    StoreServer(Socket listening, PeerOptions options);
    void start();
    using Connections = std::list<std::shared_ptr<Connection>>;

    void note_shortage(const char *what);
    void turn_away_rest() noexcept;
    void receive(Socket socket);
    void drop_oldest_stranger(size_t strangers);
    void look_for_silence(Connection &connection, double late_s);
    std::shared_ptr<Connection> other_of(const Connection &connection, int32_t rank);
    Connections all();
    size_t count_ranks() const;                           // under the lock
    bool is_awaited(const Connection &connection) const;  // under the lock
    void log_dropped(const Connection &connection, const std::string &how);
    void log_stranger(const Connection &connection, const std::string &how);

    Socket listening_;
    const PeerOptions options_;
    const std::shared_ptr<HashStore> table_;
    std::atomic<bool> is_complete_{false}, leaves_newcomers_{false};
    uint64_t watched_ = 0;
    struct Logged {
        Deadline::Clock::time_point at;
        size_t untold = 0;  // since
    };
    std::map<std::string, Logged> logged_;  // strangers, by reason of the drop; in the watch thread
    std::set<std::string> met_;             // admitted processes; in the watch thread
    bool is_paused_ = false;  // no descriptor was left; accepts again at the next tick
    std::optional<Deadline::Clock::time_point> short_since_;
    std::string told_shortage_;
    std::mutex mutex_;
    std::condition_variable left_;
    Connections connections_;
    int32_t gone_ = 0;  // ranks, left or died
    std::set<int32_t> excused_;
};

}  // namespace yoke
