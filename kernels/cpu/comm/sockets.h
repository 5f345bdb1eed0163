// Sockets by name, for connect.cpp.
//
// Contract: no socket blocks, and every socket closes on exec.
#pragma once

#include <sys/socket.h>

#include "kernels/cpu/comm/descriptor.h"
#include "kernels/cpu/comm/failure.h"

namespace yoke::cpu::comm {

// Address at which a socket listens, or to which it connects.
struct Name {
    sockaddr_storage storage = {};
    socklen_t bytes = 0;

    const sockaddr *address() const { return reinterpret_cast<const sockaddr *>(&storage); }
};

// Makes a name of "10.0.0.7", "::1" or "fe80::1%eth0". Returns false if the address is not numeric.
bool tcp_name(const char *address, uint16_t port, Name *out);
// Makes an abstract name: there is no file, so the name disappears with its last socket.
Name local_name(const char *text);

// Returns whether errno reports missing descriptors or missing memory. Waiting does not help then.
bool is_shortage();
// Reports such a shortage and returns YOKE_E_IO.
yoke_status fail_shortage(const char *what, int rank);

// Opens a socket that listens at `name`. Returns false, with errno, if this is impossible.
bool listen_at(const Name &name, Descriptor *out);
uint16_t port_of(int socket);
// Starts to connect; the connection may still be in progress. Returns false, with errno, if connecting is impossible.
bool start_connect(const Name &name, Descriptor *out);
// Prepares a socket for small latencies. Ranks of one node have no congestion. So a local socket avoids the pacing of
// BBR, in case BBR is the system's choice: pauses between calls spoil BBR's estimate of the bandwidth, and 1 MiB then
// takes twice the time.
void prepare_stream(int socket, bool is_local);

// Sends bytes at once and returns whether all bytes were sent. Only for the first bytes of a connection, because
// these bytes fit the socket's buffer.
bool send_whole(int socket, const void *data, size_t bytes);
// Sends a message with descriptors. Returns false, with errno, if the whole message was not sent.
bool send_descriptors(int socket, const void *data, size_t bytes, const int *descriptors,
                      int count);
enum class Got { kAll, kNothingNow, kEnd, kShortage };
// Receives the message of a send_descriptors call, with the descriptors. Returns kAll for a whole message,
// kNothingNow if no message has arrived, and kEnd if the connection has ended or the message has other sizes. If this
// process may have no more descriptors, returns kShortage, with errno.
Got receive_descriptors(int socket, void *data, size_t bytes, Descriptor *descriptors, int count);

}  // namespace yoke::cpu::comm
