// store_link.h: the inside of a store's client: requests in progress on its connection, and the pulse of rank 0.
#pragma once

#include "core/store/store_channel.h"
#include "core/store/store_client.h"

#include <condition_variable>
#include <map>

namespace yoke {

class ClientStore::Link final : public Watched, public std::enable_shared_from_this<Link> {
public:
    struct Answer {
        wire::Kind kind = wire::Kind::kNothing;
        std::vector<std::string> texts;
        yoke_status status = YOKE_OK;  // for kFailed
        std::string text() const { return texts.empty() ? "" : texts.front(); }
    };

    Link(Socket socket, PeerOptions options);
    void start();
    // Sends the goodbye message and closes the connection. `why`: failure of this rank, or "".
    void leave(const char *why = "") noexcept;
    // Sends the request, waits for the answer and returns it. Raises the errors of a store's calls.
    Answer ask(wire::Writer request, const Patience &patience);
    // Sends the request. The watch thread calls `then` with the answer's text; if the request fails or the connection
    // ends, `then` is not called. Returns the request's number, or 0 if the connection has ended.
    uint64_t ask_later(wire::Writer request, Then then);
    void forget(uint64_t number) noexcept;
    void wake() noexcept;
    const std::string &server() const noexcept { return server_; }
    SocketAddress local() const { return channel_.socket().local(); }

    void on_ready(uint32_t events) noexcept override;
    void on_tick(double late_s) noexcept override;

private:
    struct Request {
        Then then;  // empty: a call waits
        std::optional<Answer> answer;
    };
    using Lock = std::unique_lock<std::mutex>;

    uint64_t send(wire::Writer request, Then then);
    Answer await(Lock &lock, uint64_t number, const Patience &patience);
    Answer await_late(Lock &lock, uint64_t number, const Patience &patience);
    std::optional<Answer> take_answer(uint64_t number);
    // Raises YOKE_E_COMM if the connection has ended, else the error of the caller's stop, if any.
    void check(const Patience &patience) const;
    void give_up(uint64_t number) noexcept;
    bool take(wire::Reader &frame);
    void end(const std::string &how);
    void tell(PeerEvent::Kind kind, const std::string &how, double silent_s = 0);

    Channel channel_;
    const PeerOptions options_;
    const std::string server_;
    const int64_t process_;
    bool has_left_ = false;  // rank 0; in the watch thread
    std::mutex mutex_;
    std::condition_variable came_;
    std::map<uint64_t, Request> requests_;
    uint64_t last_ = 0;
    std::string broken_;  // reason for the connection's end; "" before
};

}  // namespace yoke
