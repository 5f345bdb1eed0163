// Sockets by name: what connect.cpp needs of them.
//
// Contract: every socket here neither blocks nor outlives an exec.
#pragma once

#include <sys/socket.h>

#include "kernels/cpu/comm/descriptor.h"
#include "kernels/cpu/comm/failure.h"

namespace yoke::cpu::comm {

// Where a socket listens or connects to.
struct Name {
    sockaddr_storage storage = {};
    socklen_t bytes = 0;

    const sockaddr *address() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

// "10.0.0.7", "::1", "fe80::1%eth0"; false where it is no numeric address.
bool tcp_name(const char *address, uint16_t port, Name *out);
// An abstract name: no file, nothing left when all who have it are gone.
Name local_name(const char *text);

// Whether errno, as it is, tells of a lack that waiting does not end: of descriptors or of memory.
bool is_shortage();
// The failure of what met with one.
yoke_status fail_shortage(const char *what, int rank);

// False with errno.
bool listen_at(const Name &name, Descriptor *out);
uint16_t port_of(int socket);
// The connection may be under way still; with errno where it cannot be.
bool start_connect(const Name &name, Descriptor *out);
// Between ranks of one node nothing is congested. There it does without the pace of BBR, where that is the system's
// choice, whose guess at the bandwidth the pauses between calls spoil: 1 MiB then takes twice its time.
void prepare_stream(int socket, bool is_local);

// Whether all of it was sent: of the first bytes of a connection, which fit its buffer.
bool send_whole(int socket, const void *data, size_t bytes);
// A message with descriptors beside it.
bool send_descriptors(int socket, const void *data, size_t bytes, const int *descriptors,
                      int count);
enum class Got { kAll, kNothingNow, kEnd, kShortage };
// The whole message, which one call of send_descriptors has sent, with its descriptors; kShortage, with errno, where
// this process may have no more of them.
Got receive_descriptors(int socket, void *data, size_t bytes, Descriptor *descriptors, int count);

}  // namespace yoke::cpu::comm
