#include "kernels/cpu/comm/connector.h"

#include <errno.h>
#include <netdb.h>

#include <algorithm>
#include <cstring>

#include "kernels/cpu/comm/failure.h"

namespace yoke::cpu::comm {

constexpr int64_t kMilli = 1'000'000;
constexpr int64_t kPause = 50 * kMilli;       // before a connection is tried again
constexpr int64_t kToGreet = 5'000 * kMilli;  // time for the Hello of an accepted connection
constexpr size_t kMostUnproved = 256;

// ---- proofs ---------------------------------------------------------------------------------------------------------

Hello Connector::hello_to(int peer) const
{
    Hello hello;
    hello.cookie = cookie_;
    hello.from = rank_;
    hello.to = peer;
    return hello;
}

// Returns whether a Hello has this communicator's cookie and comes from rank `from` to this rank. Compares all bytes
// of the cookie, so the time does not show where the first wrong byte is.
bool Connector::is_ours(const Hello &hello, int from) const
{
    unsigned wrong = 0;
    for (size_t i = 0; i < sizeof(Cookie); ++i)
        wrong |= static_cast<unsigned>(hello.cookie.bytes[i] ^ cookie_.bytes[i]);
    return !wrong && hello.mark == kHelloMark && hello.to == rank_ && hello.from == from &&
           hello.lane == 0;
}

Got Connector::read_hello(int socket, Reading *reading)
{
    char *to = reinterpret_cast<char *>(&reading->hello) + reading->bytes;
    const ssize_t got = recv(socket, to, sizeof(Hello) - reading->bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return Got::kNothingNow;
    if (got <= 0) return Got::kEnd;
    reading->bytes += static_cast<size_t>(got);
    return reading->bytes == sizeof(Hello) ? Got::kAll : Got::kNothingNow;
}

// ---- connections that this rank makes -------------------------------------------------------------------------------

void Connector::seek(int peer, const Name &name)
{
    Peer &one = peers_[static_cast<size_t>(peer)];
    one.name = name;
    one.state = State::kPausing;
}

void Connector::pause(Peer &peer, int64_t now)
{
    peer.socket.reset();
    peer.state = State::kPausing;
    peer.again = now + kPause;
}

yoke_status Connector::connect_to(Peer &peer, int64_t now)
{
    peer.reading = {};
    if (start_connect(peer.name, &peer.socket)) {
        peer.state = State::kConnecting;
        return YOKE_OK;
    }
    if (is_shortage()) return fail_shortage("connect to another rank", rank_);
    pause(peer, now);
    return YOKE_OK;
}

// Takes a step with a peer to which this rank connects, if the step is possible now. Returns a failure if descriptors
// or memory are missing.
yoke_status Connector::go_on(int number, int64_t now)
{
    Peer &peer = peers_[static_cast<size_t>(number)];
    if (peer.state == State::kPausing && now >= peer.again)
        if (yoke_status status = connect_to(peer, now)) return status;
    greet(number, now);
    return YOKE_OK;
}

void Connector::greet(int number, int64_t now)
{
    Peer &peer = peers_[static_cast<size_t>(number)];
    if (peer.state == State::kConnecting) {
        pollfd writable = {peer.socket.get(), POLLOUT, 0};
        if (poll(&writable, 1, 0) <= 0) return;
        int error = 0;
        socklen_t bytes = sizeof error;
        getsockopt(peer.socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes);
        const Hello hello = hello_to(number);
        if (error || !send_whole(peer.socket.get(), &hello, sizeof hello)) return pause(peer, now);
        peer.state = State::kGreeting;
    }
    if (peer.state == State::kGreeting) {
        const Got got = read_hello(peer.socket.get(), &peer.reading);
        if (got == Got::kNothingNow) return;
        if (got == Got::kEnd || !is_ours(peer.reading.hello, number)) return pause(peer, now);
        peer.state = State::kDone;
    }
}

// ---- connections that other ranks make ------------------------------------------------------------------------------

void Connector::drop(const Unproved &unproved, int rank, const char *why)
{
    sockaddr_storage from = {};
    socklen_t bytes = sizeof from;
    char host[64] = "this machine", service[16] = "";
    if (getpeername(unproved.socket.get(), reinterpret_cast<sockaddr *>(&from), &bytes) == 0 &&
        from.ss_family != AF_UNIX)
        getnameinfo(reinterpret_cast<sockaddr *>(&from), bytes, host, sizeof host, service,
                    sizeof service, NI_NUMERICHOST | NI_NUMERICSERV);
    warn(
        "cpu: rank %d dropped a connection from %s %s while the ranks connected: the connection %s",
        rank, host, service, why);
}

yoke_status Connector::admit(const Descriptor &door, int64_t now)
{
    for (;;) {
        Unproved unproved;
        unproved.socket = Descriptor::made(
            [&] { return accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); });
        if (!unproved.socket) {
            pollfd waiting = {door.get(), POLLIN,
                              0};  // a shortage occurs even without a connection
            const int code = errno;
            if (!is_shortage() || poll(&waiting, 1, 0) <= 0) return YOKE_OK;
            errno = code;
            return fail_shortage("accept a connection of another rank", rank_);
        }
        unproved.until = now + kToGreet;
        if (unproved_.size() == kMostUnproved) {
            drop(unproved_.front(), rank_,
                 "sent no complete greeting, and too many connections were open");
            unproved_.erase(unproved_.begin());
        }
        unproved_.push_back(static_cast<Unproved &&>(unproved));
    }
}

// Reads the Hello of an accepted connection. Returns true if the peer is still unknown and has time left. Otherwise
// hands the connection to its peer, or drops the connection, and returns false.
bool Connector::hear(Unproved &unproved, int64_t now)
{
    const Got got = read_hello(unproved.socket.get(), &unproved.reading);
    if (got == Got::kNothingNow) {
        if (now < unproved.until) return true;
        drop(unproved, rank_, "sent no complete greeting within five seconds");
        return false;
    }
    const Hello &hello = unproved.reading.hello;
    const bool is_ranks = got == Got::kAll && hello.from >= 0 &&
                          hello.from < static_cast<int>(peers_.size()) &&
                          is_ours(hello, hello.from);
    if (!is_ranks) {
        drop(unproved, rank_, got == Got::kEnd ? "ended" : "does not belong to this group");
        return false;
    }
    Peer &peer = peers_[static_cast<size_t>(hello.from)];
    const Hello answer = hello_to(hello.from);
    if (peer.state != State::kExpected ||
        !send_whole(unproved.socket.get(), &answer, sizeof answer))
        return false;
    peer.socket = static_cast<Descriptor &&>(unproved.socket);
    peer.state = State::kDone;
    return false;
}

// ---- the loop -------------------------------------------------------------------------------------------------------

int Connector::lowest_missing() const
{
    for (size_t i = 0; i < peers_.size(); ++i)
        if (peers_[i].state != State::kDone) return static_cast<int>(i);
    return -1;
}

void Connector::wait(const Deadline &deadline, int64_t now)
{
    int64_t most = deadline.left(50 * kMilli);  // then is_over is asked again
    polled_.clear();
    for (const Descriptor &door : doors_) polled_.push_back({door.get(), POLLIN, 0});
    for (const Unproved &unproved : unproved_) {
        polled_.push_back({unproved.socket.get(), POLLIN, 0});
        most = std::min(most, std::max<int64_t>(unproved.until - now, 0));
    }
    for (const Peer &peer : peers_) {
        if (peer.state == State::kPausing)
            most = std::min(most, std::max<int64_t>(peer.again - now, 0));
        if (peer.state == State::kConnecting || peer.state == State::kGreeting)
            polled_.push_back(
                {peer.socket.get(),
                 static_cast<short>(peer.state == State::kGreeting ? POLLIN : POLLOUT), 0});
    }
    const timespec time = {static_cast<time_t>(most / 1'000'000'000),
                           static_cast<long>(most % 1'000'000'000)};
    ppoll(polled_.data(), polled_.size(), &time, nullptr);
}

yoke_status Connector::step(int64_t now)
{
    for (const Descriptor &door : doors_)
        if (yoke_status status = admit(door, now)) return status;
    std::erase_if(unproved_, [&](Unproved &unproved) { return !hear(unproved, now); });
    for (size_t i = 0; i < peers_.size(); ++i)
        if (yoke_status status = go_on(static_cast<int>(i), now)) return status;
    return YOKE_OK;
}

yoke_status Connector::run(const Deadline &deadline, const yoke_comm_member &init, int *missing)
{
    for (;;) {
        const int64_t now = now_ns();
        if (yoke_status status = step(now)) return status;
        const int lowest = lowest_missing();
        if (lowest < 0) return YOKE_OK;
        if (deadline.passed()) {
            *missing = lowest;
            return fail(YOKE_E_TIMEOUT,
                        "cpu: rank %d and rank %d did not connect to each other within %.3g s",
                        rank_, lowest, init.timeout_s);
        }
        if (init.is_over && init.is_over(init.user))
            return fail(YOKE_E_CANCELLED, "cpu: the group failed while its ranks connected");
        wait(deadline, now);
    }
}

}  // namespace yoke::cpu::comm
