#include "core/store/store_channel.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace yoke {

void Channel::start(const std::shared_ptr<Watched> &owner, double tick_s)
{
    const std::lock_guard lock(mutex_);
    watched_ = watch(owner, socket_.fd(), EPOLLIN, tick_s);
    if (!out_.empty()) rewatch(watched_, EPOLLIN | EPOLLOUT);
}

// Ends the watch and closes the socket. The watch thread and another thread may call this at once. Each unwatches the
// socket before it closes.
void Channel::stop() noexcept
{
    uint64_t watched = 0;
    {
        const std::lock_guard lock(mutex_);
        watched = watched_;
    }
    unwatch(watched);
    const std::lock_guard lock(mutex_);
    socket_.close();
}

bool Channel::push()
{
    while (sent_ < out_.size()) {
        const ssize_t sent =
            ::send(socket_.fd(), out_.data() + sent_, out_.size() - sent_, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) break;  // full, or at an end, which the receiving code will see
        sent_ += static_cast<size_t>(sent);
    }
    if (sent_ < out_.size()) return false;
    out_.clear();
    sent_ = 0;
    return true;
}

bool Channel::send(std::string frame)
{
    const std::lock_guard lock(mutex_);
    if (!socket_.present()) return true;  // no reader is left
    if (out_.size() - sent_ + frame.size() > kMostQueued) return false;
    const bool was_idle = out_.empty();
    out_.erase(0, sent_);
    sent_ = 0;
    out_ += frame;
    if (was_idle && !push() && watched_) rewatch(watched_, EPOLLIN | EPOLLOUT);
    return true;
}

bool Channel::is_idle()
{
    const std::lock_guard lock(mutex_);
    return out_.empty();
}

void Channel::flush()
{
    const std::lock_guard lock(mutex_);
    if (push() && watched_) rewatch(watched_, EPOLLIN);
}

// Reads a part of the received bytes. The rest is read later, after other connections had their turn. Returns false,
// with the reason in `why`, if the connection has ended.
bool Channel::fill(std::string &why)
{
    char bytes[size_t{64} << 10];
    const ssize_t came = recv(socket_.fd(), bytes, sizeof bytes, 0);
    const int failure = came < 0 ? errno : 0;
    if (came > 0) {
        heard_at_ = Deadline::Clock::now();
        in_.append(bytes, static_cast<size_t>(came));
    }
    if (came > 0 || failure == EAGAIN || failure == EINTR) return true;
    why = failure ? strerror(failure) : "the connection was closed";
    return false;
}

// Returns the header of the next frame, once the whole frame is there; else nullopt. If the frame is longer than
// `longest`, sets `why`.
std::optional<wire::Header> Channel::header(size_t longest, std::string &why) const
{
    wire::Header head{};
    const size_t there = in_.size() - taken_;
    if (there < sizeof head) return std::nullopt;
    memcpy(&head, in_.data() + taken_, sizeof head);
    if (head.bytes > longest) {
        why = "the peer announced a message of " + std::to_string(head.bytes) + " bytes";
        return std::nullopt;
    }
    if (there < sizeof head + head.bytes) return std::nullopt;
    return head;
}

double Channel::tick_of(double silence_s, double longest) noexcept
{
    constexpr double kShortest = 0.02, kTicksPerSilence = 8;
    return silence_s > 0 ? std::clamp(silence_s / kTicksPerSilence, kShortest, longest) : longest;
}

std::optional<Channel::Silence> Channel::look_for_silence(double silence_s, double late_s) noexcept
{
    if (silence_s <= 0) return std::nullopt;
    if (late_s > silence_s / 2) heard_at_ = Deadline::Clock::now();
    const std::chrono::duration<double> silent = Deadline::Clock::now() - heard_at_;
    const bool is_silent = silent.count() > silence_s;
    if (std::exchange(is_silent_, is_silent) == is_silent) return std::nullopt;
    return Silence{is_silent ? PeerEvent::kSilent : PeerEvent::kHeard, silent.count()};
}

}  // namespace yoke
