// store_channel.h: one end of a connection between a store's client and server: frames out of and into a socket that is
// watched.
#pragma once

#include "core/store/store_wire.h"
#include "core/store/watch.h"

#include <sys/epoll.h>

namespace yoke {

class Channel {
public:
    static constexpr size_t kMostQueued = size_t{64} << 20;  // of what the other side does not take

    explicit Channel(Socket socket) : socket_(std::move(socket)) {}
    // Has the socket watched, on behalf of whoever owns the channel.
    void start(const std::shared_ptr<Watched> &owner, double tick_s);
    // Ends that; the socket is closed once nothing of the owner runs.
    void stop() noexcept;

    // From any thread. What the socket does not take at once waits in a queue; false where that is full.
    bool send(std::string frame);
    bool is_idle();  // nothing is queued

    // In the watch thread. Calls on_frame(Reader &) for each whole frame of at most `longest` bytes until it says
    // false; false at the end of the connection, and `why`.
    template <class OnFrame>
    bool receive(size_t longest, OnFrame &&on_frame, std::string &why)
    {
        return fill(why) && take_frames(longest, on_frame, why);
    }
    void flush();

    // Returns the seconds between two looks for a silence: often enough to tell the silence in time.
    static double tick_of(double silence_s, double longest) noexcept;
    struct Silence {
        PeerEvent::Kind kind;  // kSilent or kHeard
        double silent_s;
    };
    // Returns the news since the look before: the other side has been silent for more than `silence_s`, or is heard
    // again. `late_s`: by how much the tick came too late. If this process stood still itself, it could hear nobody.
    std::optional<Silence> look_for_silence(double silence_s, double late_s) noexcept;
    const Socket &socket() const noexcept { return socket_; }

private:
    bool fill(std::string &why);
    bool push();  // under the lock: whether nothing is left
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
    bool is_silent_ = false;  // and the owner was told
    std::mutex mutex_;        // of what follows
    std::string out_;
    size_t sent_ = 0;
};

}  // namespace yoke
