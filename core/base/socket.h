// socket.h: TCP sockets over IPv4 and IPv6: non-blocking, closed at exec, and closed in forked children, whose copies
// would otherwise keep a connection open after its process has died.
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

    // "10.0.0.1" or "::1", of a link "fe80::1%eth0"; and "10.0.0.1:29500", "[::1]:29500".
    std::string host() const;
    std::string text() const;
    uint16_t port() const noexcept;
    void set_port(uint16_t port) noexcept;
    int family() const noexcept { return storage.ss_family; }
    bool is_loopback() const noexcept;
    // Of numbers alone, without asking anybody; nothing for a name.
    static std::vector<SocketAddress> numeric(const std::string &host, uint16_t port);
    // Of every family at this port.
    static SocketAddress any(int family, uint16_t port);
};

// All addresses of a name, IPv4 and IPv6. Raises YOKE_E_COMM with the resolver's reason, YOKE_E_TIMEOUT where it does
// not answer in time: it is asked in a thread of its own.
std::vector<SocketAddress> resolve(const std::string &host, uint16_t port, Deadline deadline);

// A descriptor that is closed with it. In a forked child it is closed already, and present() is false.
class Socket {
public:
    Socket() = default;
    Socket(Socket &&other) noexcept;
    Socket &operator=(Socket &&other) noexcept;
    ~Socket() { close(); }

    // -1 in errno's manner: not present(), and errno says why. Listening: an IPv6 one takes IPv4 as well where it is
    // "any".
    static Socket listen(const SocketAddress &address);
    static Socket connect(const SocketAddress &address, Deadline deadline);
    Socket accept() const;
    // Any other descriptor that no child may keep.
    static Socket adopt(int descriptor);

    bool present() const noexcept;
    int fd() const noexcept { return present() ? fd_ : -1; }
    void close() noexcept;
    SocketAddress local() const;
    SocketAddress remote() const;

private:
    int fd_ = -1;
    uint64_t process_ = 0;  // how many forks it was from the first one
};

// A whole message, or what was there before the deadline or an end: false. For what is said before a watch takes over.
bool send_all(const Socket &socket, std::string_view bytes, Deadline deadline);
bool receive_all(const Socket &socket, char *bytes, size_t count, Deadline deadline);

}  // namespace yoke
