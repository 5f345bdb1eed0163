#include "core/store/socket_address.h"

#include "core/base/error.h"
#include "core/base/interrupt.h"
#include "core/base/start_thread.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netdb.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>

namespace yoke {

namespace {

const sockaddr_in &v4(const SocketAddress &address)
{
    return reinterpret_cast<const sockaddr_in &>(address.storage);
}
const sockaddr_in6 &v6(const SocketAddress &address)
{
    return reinterpret_cast<const sockaddr_in6 &>(address.storage);
}

// Answer of the resolver. The caller may have gone before the answer comes.
struct Lookup {
    std::mutex mutex;
    std::condition_variable came;
    bool is_there = false;
    int failure = 0;
    std::vector<SocketAddress> addresses;
};

int look_up(const std::string &host, const std::string &port, int flags,
            std::vector<SocketAddress> &out)
{
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = flags | AI_NUMERICSERV;
    addrinfo *found = nullptr;
    const int failure = getaddrinfo(host.c_str(), port.c_str(), &hints, &found);
    if (failure) return failure;
    for (const addrinfo *one = found; one; one = one->ai_next)
        out.push_back(SocketAddress::of(one->ai_addr, one->ai_addrlen));
    freeaddrinfo(found);
    return 0;
}

void ask(const std::shared_ptr<Lookup> &answer, const std::string &host, const std::string &port)
{
    std::vector<SocketAddress> addresses;
    const int failure = look_up(host, port, 0, addresses);
    const std::lock_guard lock(answer->mutex);
    answer->failure = failure;
    answer->addresses = std::move(addresses);
    answer->is_there = true;
    answer->came.notify_all();
}

}  // namespace

SocketAddress SocketAddress::of(const sockaddr *address, socklen_t length)
{
    SocketAddress made;
    made.length = std::min<socklen_t>(length, sizeof made.storage);
    memcpy(&made.storage, address, made.length);
    return made;
}

SocketAddress SocketAddress::any(int family, uint16_t port)
{
    SocketAddress made;
    made.storage.ss_family = static_cast<sa_family_t>(family);
    made.length = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    made.set_port(port);
    return made;
}

std::string SocketAddress::host() const
{
    char text[INET6_ADDRSTRLEN + IF_NAMESIZE + 1] = "?";
    if (family() == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6(*this).sin6_addr)) {
        inet_ntop(AF_INET, &v6(*this).sin6_addr.s6_addr[12], text, sizeof text);
        return text;
    }
    getnameinfo(get(), length, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    return text;
}

std::string SocketAddress::text() const
{
    const std::string name = host();
    const bool has_colons = name.find(':') != name.npos;
    return format(has_colons ? "[%s]:%u" : "%s:%u", name.c_str(), port());
}

uint16_t SocketAddress::port() const noexcept
{
    return ntohs(family() == AF_INET ? v4(*this).sin_port : v6(*this).sin6_port);
}

void SocketAddress::set_port(uint16_t port) noexcept
{
    // Both families have the port at the same place.
    reinterpret_cast<sockaddr_in &>(storage).sin_port = htons(port);
}

bool is_loopback(std::string_view host)
{
    return host.substr(0, 4) == "127." || host == "::1";
}

std::vector<SocketAddress> resolve(const std::string &host, uint16_t port, Deadline deadline)
{
    const std::string service = std::to_string(port);
    std::vector<SocketAddress> numbers;
    if (!look_up(host, service, AI_NUMERICHOST, numbers)) return numbers;
    const auto answer = std::make_shared<Lookup>();
    const std::string why =
        start_detached_thread([answer, host, service] { ask(answer, host, service); });
    if (!why.empty())
        fail(
            YOKE_E_OOM,
            "the system cannot start the thread that looks up the host '%s': %s; check ulimit -u, or give a numeric address",
            host.c_str(), why.c_str());
    std::unique_lock lock(answer->mutex);
    if (!wait_until(answer->came, lock, deadline, [&] { return answer->is_there; }))
        fail(YOKE_E_TIMEOUT,
             "the resolver did not answer within %g s for the host '%s'; give a numeric address",
             deadline.given_s(), host.c_str());
    if (answer->failure)
        fail(
            YOKE_E_COMM,
            "the host '%s' cannot be found: %s; give a name that the hosts of all ranks know, or a numeric address",
            host.c_str(), gai_strerror(answer->failure));
    return std::move(answer->addresses);
}

}  // namespace yoke
