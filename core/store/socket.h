// socket.h: TCP sockets over IPv4 and IPv6: non-blocking, closed at exec, and closed in forked children, whose copies
// would otherwise keep a connection open after its process has died.
#pragma once

#include "core/base/deadline.h"
#include "core/store/socket_address.h"

#include <cerrno>
#include <string_view>

namespace yoke {

// Descriptor closed by its destructor. In a forked child, the descriptor is closed already, and present() is false.
class Socket {
public:
    Socket() = default;
    Socket(Socket &&other) noexcept;
    Socket &operator=(Socket &&other) noexcept;
    ~Socket() { close(); }

    // Opens a socket that listens at the address. On failure, the result is not present() and errno gives the reason;
    // so for connect() and accept(). An IPv6 socket that listens on any address takes IPv4, too.
    static Socket listen(const SocketAddress &address);
    static Socket listen(uint16_t port);  // by IPv6 and IPv4 alike if the machine has both
    static Socket connect(const SocketAddress &address, Deadline deadline);
    Socket accept() const;
    // Adopts any other descriptor that must not stay open in a forked child. `make` returns the descriptor or -1, and
    // takes no time. Returns a Socket that is not present() after -1.
    template <class Make>
    static Socket adopt(Make &&make)
    {
        const Made made;  // keeps forks out until the descriptor is in the list
        return Socket(made.keep(make()));
    }

    bool present() const noexcept;
    int fd() const noexcept { return present() ? fd_ : -1; }
    void close() noexcept;
    SocketAddress local() const;
    SocketAddress remote() const;
    // Makes the system send small messages at once.
    void set_no_delay() const noexcept;

private:
    struct Made {
        Made();
        ~Made();
        int keep(int made) const;
    };
    explicit Socket(int fd);

    int fd_ = -1;
    uint64_t process_ = 0;  // number of forks since the first process
};

// Returns whether the error means that descriptors or memory are missing: another try soon does not help.
inline bool is_shortage(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM;
}

// Opens a listening socket without an owner, for threads with a descriptor table of their own. accepted() and
// connected() do so too. Each returns the descriptor, or -1 with errno.
int listening_at(const SocketAddress &address);
int listening_at(uint16_t port);
int accepted(int listening);
int connected(const SocketAddress &address, Deadline deadline);

// Sends a whole message; receive_all() receives `count` bytes. Both return false at the deadline, at an error or at
// the connection's end; errno gives the reason, 0 at an end. Used before the watch serves a socket.
bool send_all(int socket, std::string_view bytes, Deadline deadline);
bool receive_all(int socket, char *bytes, size_t count, Deadline deadline);
inline bool send_all(const Socket &socket, std::string_view bytes, Deadline deadline)
{
    return send_all(socket.fd(), bytes, deadline);
}
inline bool receive_all(const Socket &socket, char *bytes, size_t count, Deadline deadline)
{
    return receive_all(socket.fd(), bytes, count, deadline);
}

}  // namespace yoke
