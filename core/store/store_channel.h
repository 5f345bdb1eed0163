// store_channel.h: an end of a connection between a store's client and server: frames out of and into a watched
// socket.
#pragma once

#include "core/store/store_wire.h"
#include "core/store/watch.h"

#include <sys/epoll.h>

namespace yoke {

class Channel {
public:
    static constexpr size_t kMostQueued = size_t{64} << 20;  // bytes waiting for the other side

    explicit Channel(Socket socket) : socket_(std::move(socket)) {}
    // Starts the watch of the socket: the watch thread calls the owner's functions.
    void start(const std::shared_ptr<Watched> &owner, double tick_s);
    // Ends the watch. Closes the socket once no function of the owner runs in the watch thread.
    void stop() noexcept;

    // Sends a frame, from any thread. Bytes that the socket does not take at once wait in a queue. Returns false if
    // the frame does not fit into the queue. After the channel's end, drops the frame and returns true.
    bool send(std::string frame);
    bool is_idle();  // returns whether the queue is empty

    // Receives bytes, in the watch thread, and calls on_frame(Reader &) for each whole frame. Returns false if
    // on_frame returns false. Returns false and sets `why` if the connection has ended, or if a frame is longer than
    // `longest`.
    template <class OnFrame>
    bool receive(size_t longest, OnFrame &&on_frame, std::string &why)
    {
        return fill(why) && take_frames(longest, on_frame, why);
    }
    void flush();

    // Returns the seconds between two looks for missed heartbeats: an eighth of `silence_s`, but between 0.02 and
    // `longest`. If `silence_s` is 0, returns `longest`.
    static double tick_of(double silence_s, double longest) noexcept;
    struct Silence {
        PeerEvent::Kind kind;  // kSilent or kHeard
        double silent_s;
    };
    // Returns the news since the last look: missed heartbeats for more than `silence_s`, or the first bytes after
    // missed heartbeats. `late_s` is the delay of the tick. If this process itself stood still, it could not receive
    // heartbeats, so the time begins anew.
    std::optional<Silence> look_for_silence(double silence_s, double late_s) noexcept;
    const Socket &socket() const noexcept { return socket_; }

private:
    bool fill(std::string &why);
    bool push();  // under the lock; returns whether the queue is empty now
    std::optional<wire::Header> header(size_t longest, std::string &why) const;
    template <class OnFrame>
    bool take_frames(size_t longest, OnFrame &&on_frame, std::string &why)
    {
        while (const auto head = header(longest, why)) {
            wire::Reader frame(*head,
                               std::string_view(in_).substr(taken_ + sizeof *head, head->bytes));
            const bool goes_on = on_frame(frame);
            taken_ += sizeof *head + head->bytes;
            if (!goes_on) return false;
        }
        in_.erase(0, taken_);
        taken_ = 0;
        return why.empty();
    }

    Socket socket_;
    uint64_t watched_ = 0;
    std::string in_;
    size_t taken_ = 0;
    Deadline::Clock::time_point heard_at_ = Deadline::Clock::now();
    bool is_silent_ = false;  // the owner was notified of missed heartbeats
    std::mutex mutex_;        // for the fields below
    std::string out_;
    size_t sent_ = 0;
};

}  // namespace yoke
