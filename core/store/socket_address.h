// socket_address.h: where a socket is, IPv4 or IPv6, and the addresses of a host's name.
#pragma once

#include "core/base/deadline.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace yoke {

struct SocketAddress {
    sockaddr_storage storage{};
    socklen_t length = 0;

    // Returns the address without the port: "10.0.0.1", "::1", or for a link "fe80::1%eth0". An IPv4 address within
    // IPv6 is shown as IPv4.
    std::string host() const;
    // Returns the address with the port: "10.0.0.1:29500", "[::1]:29500".
    std::string text() const;
    uint16_t port() const noexcept;
    void set_port(uint16_t port) noexcept;
    int family() const noexcept { return storage.ss_family; }
    sockaddr *get() noexcept { return reinterpret_cast<sockaddr *>(&storage); }
    const sockaddr *get() const noexcept { return reinterpret_cast<const sockaddr *>(&storage); }

    // Returns the address that stands for every address of this machine.
    static SocketAddress any(int family, uint16_t port);
    static SocketAddress of(const sockaddr *address, socklen_t length);
};

// Returns whether the address, as host() returns it, is a loopback address, which leads only to this machine.
bool is_loopback(std::string_view host);

// Returns all addresses of a name or number. Raises YOKE_E_COMM with the resolver's reason, and YOKE_E_TIMEOUT if
// there is no answer in time. The resolver runs in a thread of its own; raises YOKE_E_OOM if the system gives no
// thread.
std::vector<SocketAddress> resolve(const std::string &host, uint16_t port, Deadline deadline);

}  // namespace yoke
