#include "core/store/socket.h"

#include "core/base/descriptor.h"
#include "core/base/error.h"
#include "core/base/fork.h"
#include "core/base/immortal.h"
#include "core/base/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace yoke {

namespace {

// Open sockets of this process.
struct List {
    Mutex mutex{LockRank::kOther};
    std::vector<int> open;
    std::atomic<uint64_t> process{0};
};
List &list = immortal<List>();

void close_in_child()
{
    const std::lock_guard lock(list.mutex);
    for (const int fd : list.open) close(fd);
    list.open.clear();
    list.process.fetch_add(1);
}

SocketAddress asked(int fd, int (*ask)(int, sockaddr *, socklen_t *))
{
    SocketAddress address;
    address.length = sizeof address.storage;
    if (ask(fd, address.get(), &address.length) != 0) return SocketAddress::any(AF_INET, 0);
    return address;
}

int socket_for(const SocketAddress &address)
{
    return socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

// Waits for an event of the descriptor, and returns whether it came by the deadline. If not, errno gives the reason.
bool wait_for(int fd, short events, Deadline deadline)
{
    for (;;) {
        pollfd waited{fd, events, 0};
        const int ready = poll(&waited, 1, next_look_ms(deadline));
        if (ready > 0) return true;
        if (ready < 0 && errno != EINTR) return false;
        check_interrupt();
        if (deadline.has_passed()) {
            errno = ETIMEDOUT;
            return false;
        }
    }
}

// Waits for the end of a connect in progress. Returns 0, or an errno, ETIMEDOUT at the deadline.
int outcome(int fd, Deadline deadline)
{
    if (!wait_for(fd, POLLOUT, deadline)) return errno;
    int failure = 0;
    socklen_t length = sizeof failure;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &length) == 0 ? failure : errno;
}

int connect_within(int fd, const SocketAddress &address, Deadline deadline)
{
    const int failure = connect(fd, address.get(), address.length) == 0 ? 0 : errno;
    return failure == EINPROGRESS || failure == EINTR ? outcome(fd, deadline) : failure;
}

}  // namespace

Socket::Made::Made()
{
    on_fork_child(close_in_child);
    mark_process_used();
    list.mutex.lock();
}

Socket::Made::~Made()
{
    const int failure = errno;
    list.mutex.unlock();
    errno = failure;
}

int Socket::Made::keep(int made) const
{
    const int descriptor = above_standard(made);
    if (descriptor >= 0) list.open.push_back(descriptor);
    return descriptor;
}

Socket::Socket(int fd) : fd_(fd), process_(list.process.load()) {}

Socket::Socket(Socket &&other) noexcept
    : fd_(std::exchange(other.fd_, -1)), process_(other.process_)
{
}

Socket &Socket::operator=(Socket &&other) noexcept
{
    if (this == &other) return *this;
    close();
    fd_ = std::exchange(other.fd_, -1);
    process_ = other.process_;
    return *this;
}

bool Socket::present() const noexcept
{
    return fd_ >= 0 && process_ == list.process.load(std::memory_order_relaxed);
}

void Socket::close() noexcept
{
    const int fd = std::exchange(fd_, -1);
    if (fd < 0 || process_ != list.process.load()) return;
    const std::lock_guard lock(list.mutex);
    list.open.erase(std::remove(list.open.begin(), list.open.end(), fd), list.open.end());
    ::close(fd);
}

namespace {

int closed(int fd, int failure)
{
    close(fd);
    errno = failure;
    return -1;
}

}  // namespace

int listening_at(const SocketAddress &address)
{
    const int made = socket_for(address);
    const int on = 1, off = 0;
    if (made < 0) return made;
    setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (address.family() == AF_INET6) setsockopt(made, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    const bool listens =
        bind(made, address.get(), address.length) == 0 && listen(made, SOMAXCONN) == 0;
    return listens ? made : closed(made, errno);
}

int listening_at(uint16_t port)
{
    const int both = listening_at(SocketAddress::any(AF_INET6, port));
    if (both >= 0 || errno == EADDRINUSE || errno == EACCES) return both;
    return listening_at(SocketAddress::any(AF_INET, port));
}

int accepted(int listening)
{
    return accept4(listening, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

int connected(const SocketAddress &address, Deadline deadline)
{
    const int made = socket_for(address);
    if (made < 0) return made;
    const int failure = connect_within(made, address, deadline);
    return failure ? closed(made, failure) : made;
}

Socket Socket::listen(const SocketAddress &address)
{
    return adopt([&] { return listening_at(address); });
}

Socket Socket::listen(uint16_t port)
{
    return adopt([&] { return listening_at(port); });
}

Socket Socket::connect(const SocketAddress &address, Deadline deadline)
{
    Socket made = adopt([&] { return socket_for(address); });
    if (!made.present()) return made;
    const int failure = connect_within(made.fd(), address, deadline);
    if (failure) made.close();
    errno = failure;
    return made;
}

Socket Socket::accept() const
{
    return adopt([this] { return accepted(fd()); });
}

SocketAddress Socket::local() const
{
    return asked(fd(), getsockname);
}

SocketAddress Socket::remote() const
{
    return asked(fd(), getpeername);
}

void Socket::set_no_delay() const noexcept
{
    const int on = 1;
    setsockopt(fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool send_all(int socket, std::string_view bytes, Deadline deadline)
{
    while (!bytes.empty()) {
        const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        if (sent > 0)
            bytes.remove_prefix(static_cast<size_t>(sent));
        else if (errno != EAGAIN && errno != EINTR)
            return false;
        else if (!wait_for(socket, POLLOUT, deadline))
            return false;
    }
    return true;
}

bool receive_all(int socket, char *bytes, size_t count, Deadline deadline)
{
    while (count > 0) {
        errno = 0;
        const ssize_t came = recv(socket, bytes, count, 0);
        if (came > 0) {
            bytes += came;
            count -= static_cast<size_t>(came);
        } else if (came == 0 || (errno != EAGAIN && errno != EINTR)) {
            return false;
        } else if (!wait_for(socket, POLLIN, deadline)) {
            return false;
        }
    }
    return true;
}

}  // namespace yoke
