// store_hall.h: the inside of a store's server: where connections arrive, and which rank each of them is.
#pragma once

#include "core/store/store_connection.h"
#include "core/store/store_peer.h"

#include <condition_variable>
#include <list>
#include <optional>
#include <set>

namespace yoke {

class StoreHall final : public Watched, public std::enable_shared_from_this<StoreHall> {
public:
    StoreHall(Socket listening, PeerOptions options);
    void open();
    // With a farewell to all.
    void close() noexcept;
    void on_ready(uint32_t events) noexcept override;
    void on_tick(double late_s) noexcept override;

    // For connections, in the watch thread.
    const PeerOptions &options() const noexcept { return options_; }
    // Whether a process of this description was a rank here.
    bool has_met(const std::string &about) const;
    // Lets a connection be a rank; "", or why not.
    std::string admit(Connection &connection, int32_t rank, const std::string &about);
    void tell(PeerEvent::Kind kind, int32_t rank, const std::string &about, const std::string &how,
              double silent_s = 0);
    // It is gone from here; `how` is for people.
    void end(Connection &connection, PeerEvent::Kind kind, const std::string &how) noexcept;

    const std::shared_ptr<HashStore> &shared_table() const noexcept { return table_; }
    SocketAddress address() const { return listening_.local(); }
    void close_to_newcomers() noexcept { is_complete_.store(true); }
    void leave_newcomers() noexcept;
    bool is_complete() const noexcept { return is_complete_.load(); }
    std::string reached_at();
    bool wait_until_left(Deadline deadline, int32_t at_least);
    void excuse(const std::vector<int32_t> &ranks);
    void expect_all();

private:
    using Connections = std::list<std::shared_ptr<Connection>>;

    void note_shortage(const char *what);
    void turn_away_rest() noexcept;
    void receive(Socket socket);
    void drop_oldest_stranger(size_t strangers);
    void look_for_silence(Connection &connection);
    std::shared_ptr<Connection> other_of(const Connection &connection, int32_t rank);
    Connections all();
    size_t count_ranks() const;                           // under the lock
    bool is_awaited(const Connection &connection) const;  // so
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
    std::map<std::string, Logged>
        logged_;                 // strangers, by why they were dropped; in the watch thread
    std::set<std::string> met_;  // processes that were admitted; in the watch thread
    bool is_paused_ = false;     // no descriptor was left; accepts again at the next tick
    std::optional<Deadline::Clock::time_point> short_since_;
    std::string told_shortage_;
    std::mutex mutex_;
    std::condition_variable left_;
    Connections connections_;
    int32_t gone_ = 0;  // ranks that have left or died
    std::set<int32_t> excused_;
};

}  // namespace yoke
