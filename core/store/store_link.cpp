#include "core/store/store_link.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"

#include <unistd.h>

#include <utility>

namespace yoke {

namespace {

using wire::Kind;

ClientStore::Link::Answer read_answer(wire::Reader &frame)
{
    ClientStore::Link::Answer answer;
    answer.kind = frame.kind();
    if (answer.kind == Kind::kFailed) answer.status = static_cast<yoke_status>(frame.number());
    while (frame.is_whole() && !frame.is_at_end()) answer.texts.push_back(frame.text());
    return answer;
}

}  // namespace

ClientStore::Link::Link(Socket socket, PeerOptions options)
    : channel_(std::move(socket)),
      options_(std::move(options)),
      server_(channel_.socket().remote().text()),
      process_(getpid())
{
}

void ClientStore::Link::start()
{
    constexpr double kLongestTick = 5;  // the pause between two pings
    const bool has_tick = options_.silence_s > 0;
    channel_.start(shared_from_this(),
                   has_tick ? Channel::tick_of(options_.silence_s, kLongestTick) : 0);
}

void ClientStore::Link::leave(const char *why) noexcept
{
    if (process_ != getpid()) return;
    wire::Writer bye(Kind::kBye);
    if (*why) bye.text(why);
    channel_.send(std::move(bye).take());
    channel_.stop();
}

void ClientStore::Link::check(const Patience &patience) const
{
    if (!broken_.empty())
        fail(
            YOKE_E_COMM,
            "store: the connection to rank 0 at %s has ended: %s; check why its process ended, and start the job again",
            server_.c_str(), broken_.c_str());
    patience.stop->check();
}

uint64_t ClientStore::Link::send(wire::Writer request, Then then)
{
    const uint64_t number = ++last_;
    requests_[number].then = std::move(then);
    if (channel_.send(std::move(request.request(number)).take())) return number;
    requests_.erase(number);
    fail(YOKE_E_COMM, "store: rank 0 at %s has not read %zu bytes that this rank sent earlier",
         server_.c_str(), Channel::kMostQueued);
}

ClientStore::Link::Answer ClientStore::Link::ask(wire::Writer request, const Patience &patience)
{
    if (process_ != getpid()) detail::fail_forked("get");
    Lock lock(mutex_);
    check(patience);
    const Answer answer = await(lock, send(std::move(request), nullptr), patience);
    if (answer.kind == Kind::kFailed) throw Error(answer.status, answer.text());
    if (answer.kind == Kind::kMissing)
        detail::fail_late(answer.texts, patience, "rank 0 at " + server_);
    return answer;
}

uint64_t ClientStore::Link::ask_later(wire::Writer request, Then then)
{
    if (process_ != getpid()) detail::fail_forked("when_set");
    const Lock lock(mutex_);
    return broken_.empty() ? send(std::move(request), std::move(then)) : 0;
}

void ClientStore::Link::forget(uint64_t number) noexcept
{
    if (process_ != getpid()) return;
    Then dropped;  // released without the lock
    const Lock lock(mutex_);
    const auto found = requests_.find(number);
    if (found == requests_.end()) return;
    dropped = std::move(found->second.then);
    give_up(number);
}

std::optional<ClientStore::Link::Answer> ClientStore::Link::take_answer(uint64_t number)
{
    const auto found = requests_.find(number);
    if (!found->second.answer) return std::nullopt;
    std::optional<Answer> answer = std::move(found->second.answer);
    requests_.erase(found);
    return answer;
}

void ClientStore::Link::give_up(uint64_t number) noexcept
{
    requests_.erase(number);
    channel_.send(wire::Writer(Kind::kCancel, number).take());
}

ClientStore::Link::Answer ClientStore::Link::await(Lock &lock, uint64_t number,
                                                   const Patience &patience)
{
    while (!patience.deadline.has_passed()) {
        if (auto answer = take_answer(number)) return std::move(*answer);
        try {
            check(patience);
            came_.wait_until(lock, next_look(patience.deadline));
            check_interrupt(lock);
        } catch (...) {
            give_up(number);
            throw;
        }
    }
    return await_late(lock, number, patience);
}

// Cancels the request after its deadline, and waits a moment for the answer. The server answers with the missing
// keys, or with values that came meanwhile. Raises YOKE_E_TIMEOUT if the server does not answer.
ClientStore::Link::Answer ClientStore::Link::await_late(Lock &lock, uint64_t number,
                                                        const Patience &patience)
{
    constexpr auto kGrace = std::chrono::milliseconds(150);
    channel_.send(wire::Writer(Kind::kCancel, number).take());
    const auto is_answered = [&] { return requests_[number].answer || !broken_.empty(); };
    came_.wait_for(lock, kGrace, is_answered);
    if (auto answer = take_answer(number)) return std::move(*answer);
    requests_.erase(number);
    check(patience);
    fail(
        YOKE_E_TIMEOUT,
        "store: rank 0 at %s did not answer within %g s; check whether its process is stopped, or its network is down",
        server_.c_str(), patience.deadline.given_s());
}

void ClientStore::Link::wake() noexcept
{
    if (process_ != getpid()) return;
    const Lock lock(mutex_);
    came_.notify_all();
}

void ClientStore::Link::on_ready(uint32_t events) noexcept
{
    constexpr size_t kLongestAnswer = Channel::kMostQueued;
    if (events & EPOLLOUT) channel_.flush();
    if (!(events & ~static_cast<uint32_t>(EPOLLOUT))) return;
    std::string why;
    const auto on_frame = [&](wire::Reader &frame) { return take(frame); };
    if (!channel_.receive(kLongestAnswer, on_frame, why))
        end(!why.empty() ? why
            : has_left_  ? "the peer has left the job"
                         : "the peer sent bytes that are not an answer");
}

bool ClientStore::Link::take(wire::Reader &frame)
{
    if (frame.kind() == Kind::kPong) return true;
    has_left_ = frame.kind() == Kind::kBye;
    if (has_left_) return false;
    Answer answer = read_answer(frame);
    Lock lock(mutex_);
    const auto found = requests_.find(frame.request());
    if (found == requests_.end()) return frame.is_whole();  // no call waits any more
    if (!found->second.then) {
        found->second.answer = std::move(answer);
        came_.notify_all();
        return frame.is_whole();
    }
    const Then then = std::move(found->second.then);
    requests_.erase(found);
    lock.unlock();
    if (answer.kind == Kind::kAnswer) then(answer.text());
    return frame.is_whole();
}

void ClientStore::Link::end(const std::string &how)
{
    channel_.stop();
    // Tells the observer before the waiting callers wake. So the groups already know of the rank's end when a woken
    // caller looks for the reason.
    tell(has_left_ ? PeerEvent::kLeft : PeerEvent::kEnded, how);
    std::vector<Then> dropped;  // released without the lock
    {
        const Lock lock(mutex_);
        broken_ = how;
        for (auto &[number, request] : requests_) dropped.push_back(std::move(request.then));
        came_.notify_all();
    }
}

void ClientStore::Link::on_tick(double late_s) noexcept
{
    if (const auto news = channel_.look_for_silence(options_.silence_s, late_s))
        tell(news->kind, "", news->silent_s);
    if (channel_.is_idle()) channel_.send(wire::Writer(Kind::kPing).take());
}

void ClientStore::Link::tell(PeerEvent::Kind kind, const std::string &how, double silent_s)
{
    if (options_.observer) options_.observer({kind, 0, silent_s, "", how});
}

}  // namespace yoke
