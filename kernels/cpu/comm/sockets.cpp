#include "kernels/cpu/comm/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>

namespace yoke::cpu::comm {

bool tcp_name(const char *address, uint16_t port, Name *out)
{
    auto *four = reinterpret_cast<sockaddr_in *>(&out->storage);
    if (inet_pton(AF_INET, address, &four->sin_addr) == 1) {
        four->sin_family = AF_INET;
        four->sin_port = htons(port);
        out->bytes = sizeof *four;
        return true;
    }
    char plain[64] = {};
    const size_t length = strcspn(address, "%");
    if (length >= sizeof plain) return false;
    memcpy(plain, address, length);
    auto *six = reinterpret_cast<sockaddr_in6 *>(&out->storage);
    if (inet_pton(AF_INET6, plain, &six->sin6_addr) != 1) return false;
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(port);
    if (address[length]) six->sin6_scope_id = if_nametoindex(address + length + 1);
    out->bytes = sizeof *six;
    return true;
}

Name local_name(const char *text)
{
    Name name;
    auto *local = reinterpret_cast<sockaddr_un *>(&name.storage);
    local->sun_family = AF_UNIX;
    const size_t length = strnlen(text, sizeof local->sun_path - 2);
    memcpy(local->sun_path + 1, text, length);
    name.bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
    return name;
}

bool is_shortage()
{
    return errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
}

yoke_status fail_shortage(const char *what, int rank)
{
    return fail_system(
        YOKE_E_IO,
        "cpu: rank %d cannot %s: it needs a descriptor for each other rank, and up to two more while the ranks connect; raise `ulimit -n`, or give the machine more memory",
        rank, what);
}

static Descriptor make_socket(const Name &name)
{
    return Descriptor::made([&] {
        return socket(name.address()->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    });
}

bool listen_at(const Name &name, Descriptor *out)
{
    Descriptor listener = make_socket(name);
    if (!listener || bind(listener.get(), name.address(), name.bytes) ||
        listen(listener.get(), SOMAXCONN))
        return false;
    *out = static_cast<Descriptor &&>(listener);
    return true;
}

uint16_t port_of(int socket)
{
    Name name;
    name.bytes = sizeof name.storage;
    if (getsockname(socket, reinterpret_cast<sockaddr *>(&name.storage), &name.bytes)) return 0;
    return ntohs(name.address()->sa_family == AF_INET6
                     ? reinterpret_cast<sockaddr_in6 *>(&name.storage)->sin6_port
                     : reinterpret_cast<sockaddr_in *>(&name.storage)->sin_port);
}

bool start_connect(const Name &name, Descriptor *out)
{
    Descriptor made = make_socket(name);
    if (!made) return false;
    if (connect(made.get(), name.address(), name.bytes) && errno != EINPROGRESS) return false;
    *out = static_cast<Descriptor &&>(made);
    return true;
}

void prepare_stream(int socket, bool is_local)
{
    const int on = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    constexpr char kWithoutPacing[] = "reno";
    if (is_local)
        setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, kWithoutPacing, sizeof kWithoutPacing - 1);
}

bool send_whole(int socket, const void *data, size_t bytes)
{
    return send(socket, data, bytes, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

constexpr int kMostDescriptors = 2;

bool send_descriptors(int socket, const void *data, size_t bytes, const int *descriptors, int count)
{
    iovec part = {const_cast<void *>(data), bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))] = {};
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), descriptors, count * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes);
}

// Takes ownership of all received descriptors, also of an unexpected message. Stores at most `count`, closes the
// rest, and returns the number of stored descriptors.
static int take_descriptors(msghdr &message, Descriptor *descriptors, int count)
{
    int taken = 0;
    for (cmsghdr *head = CMSG_FIRSTHDR(&message); head; head = CMSG_NXTHDR(&message, head)) {
        if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
        const size_t there = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < there; ++i) {
            int fd;
            memcpy(&fd, CMSG_DATA(head) + i * sizeof fd, sizeof fd);
            Descriptor one(fd);
            if (taken < count) descriptors[taken++] = static_cast<Descriptor &&>(one);
        }
    }
    return taken;
}

Got receive_descriptors(int socket, void *data, size_t bytes, Descriptor *descriptors, int count)
{
    iovec part = {data, bytes};
    alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))];
    msghdr message = {};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    const Unforked unforked;
    const ssize_t got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (got < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Got::kNothingNow
                                                                         : Got::kEnd;
    const int taken = take_descriptors(message, descriptors, count);
    if (message.msg_flags & MSG_CTRUNC) {  // some found no place in this process
        errno = EMFILE;
        return Got::kShortage;
    }
    return got == static_cast<ssize_t>(bytes) && taken == count ? Got::kAll : Got::kEnd;
}

}  // namespace yoke::cpu::comm
