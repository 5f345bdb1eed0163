// store_connection.h: a connection accepted by a store's server: a stranger until it has named its rank, then a rank.
#pragma once

#include "core/store/store_channel.h"
#include "core/store/store_hash.h"
#include "core/store/store_waiting.h"

#include <atomic>
#include <string>

namespace yoke {

class StoreServer;

class Connection final : public Watched, public std::enable_shared_from_this<Connection> {
public:
    static constexpr int32_t kStranger = -1;

    Connection(StoreServer &server, Socket socket);
    void start() { channel_.start(shared_from_this(), 0); }
    void stop() noexcept;
    void say_bye() { answer(wire::Writer(wire::Kind::kBye)); }
    void on_ready(uint32_t events) noexcept override;

    // Returns the connection's rank, or kStranger until the connection has named its rank. The functions below run in
    // the watch thread.
    int32_t rank() const noexcept { return rank_.load(); }  // from any thread
    const std::string &about() const noexcept { return about_; }
    const std::string &address() const noexcept { return address_; }
    // Returns this machine's address on the connection. is_local() returns whether the connection stays on this
    // machine.
    const std::string &reached_at() const noexcept { return reached_at_; }
    // Returns whether the connection was refused because all ranks are there and its process was a rank here before.
    // rank() of such a connection stays kStranger, but the server does not log the connection as a stranger.
    bool is_former() const noexcept { return is_former_; }
    bool is_local() const noexcept { return is_loopback(reached_at_); }
    double age_s() const;
    auto look_for_silence(double silence_s, double late_s) noexcept
    {
        return channel_.look_for_silence(silence_s, late_s);
    }
    bool is_overrun() const noexcept { return is_overrun_.load(); }
    void be_rank(int32_t rank, const std::string &about)
    {
        about_ = about;
        rank_.store(rank);
    }

private:
    bool take(wire::Reader &frame);
    bool greet(wire::Reader &frame);
    bool refuse(wire::Kind kind, const std::string &why);
    bool refuse_late(const std::string &about);
    bool refuse_start(int64_t start, int32_t rank, const std::string &about);
    bool serve(wire::Reader &frame);
    void fail_request(uint64_t request, yoke_status status, const char *why);
    static WaitingCalls::Call read_keys(wire::Reader &frame, std::string first);
    void run(wire::Reader &frame);
    void change(wire::Reader &frame, const std::string &key);
    void park(uint64_t request, WaitingCalls::Call call);
    void go_on(uint64_t request);
    void wait_for(uint64_t request, const std::string &key);
    void answer_values(uint64_t request, const WaitingCalls::Call &call);
    std::string values_of(uint64_t request, const WaitingCalls::Call &call) const;
    void cancel(uint64_t request);
    void answer(wire::Writer writer) { send(std::move(writer).take()); }
    void send(std::string frame);

    StoreServer &server_;  // for the watch thread only; a key may be set after the server's end
    const std::shared_ptr<HashStore> table_;
    Channel channel_;
    const std::string address_, reached_at_;
    const Deadline::Clock::time_point since_ = Deadline::Clock::now();
    std::atomic<int32_t> rank_{kStranger};
    std::string about_;
    bool has_left_ = false, is_former_ = false;
    std::string fault_ = "the peer sent bytes that are not a request";  // reason for a drop
    std::atomic<bool> is_overrun_{false};
    WaitingCalls waiting_;
};

}  // namespace yoke
