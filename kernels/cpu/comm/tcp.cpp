#include "kernels/cpu/comm/tcp.h"

#include <errno.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>

namespace yoke::cpu::comm {

constexpr size_t kMostAtOnce = size_t{1} << 30;  // a system call takes no more than 2 GiB
static const char kFilling[16] = {};

// Ends the sending side and reads all received bytes before the socket closes. If a socket is closed with unread
// bytes, the system resets the connection and drops bytes not yet read by the peer. Such bytes may include a header
// with the reason why the call fails.
TcpLink::~TcpLink()
{
    if (socket_ && !is_closed()) shutdown(socket_.get(), SHUT_WR);
    for (int i = 0; i < 64 && !is_closed() && receive(buffer_.get(), kBufferBytes); ++i) {
    }
}

static bool is_nothing_now(ssize_t result)
{
    return result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

size_t TcpLink::write(const iovec *parts, int count)
{
    iovec filled[16];
    count = std::min(count, 16);
    for (int i = 0; i < count; ++i) {
        filled[i] = parts[i];
        filled[i].iov_len = std::min(parts[i].iov_len, kMostAtOnce);
        if (!parts[i].iov_base) {
            filled[i].iov_base = const_cast<char *>(kFilling);
            filled[i].iov_len = std::min(parts[i].iov_len, sizeof kFilling);
        }
        if (filled[i].iov_len < parts[i].iov_len) count = i + 1;
    }
    msghdr message = {};
    message.msg_iov = filled;
    message.msg_iovlen = static_cast<size_t>(count);
    const ssize_t sent = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return static_cast<size_t>(sent);
    if (!is_nothing_now(sent)) close();
    return 0;
}

size_t TcpLink::receive(char *to, size_t bytes)
{
    const ssize_t got = recv(socket_.get(), to, std::min(bytes, kMostAtOnce), MSG_DONTWAIT);
    if (got > 0) return static_cast<size_t>(got);
    if (!is_nothing_now(got)) close();
    return 0;
}

// Returns whether `wanted` bytes are in the buffer, after a single attempt to receive bytes.
bool TcpLink::fill(size_t wanted)
{
    if (buffered() >= wanted) return true;
    if (begin_) {
        memmove(buffer_.get(), buffer_.get() + begin_, buffered());
        end_ -= begin_;
        begin_ = 0;
    }
    // For a large part, the buffer receives no further bytes, so the following bytes go directly to their
    // destination.
    const size_t most = wanted > kAheadBytes ? wanted : kAheadBytes;
    end_ += receive(buffer_.get() + end_, most - buffered());
    return buffered() >= wanted;
}

const char *TcpLink::peek(size_t bytes)
{
    return fill(bytes) ? buffer_.get() + begin_ : nullptr;
}

void TcpLink::consume(size_t bytes)
{
    begin_ += bytes;
    if (begin_ == end_) begin_ = end_ = 0;
}

size_t TcpLink::read(char *to, size_t bytes)
{
    if (!buffered() && bytes >= kAheadBytes) return receive(to, bytes);
    if (!buffered()) fill(1);
    const size_t now = std::min(buffered(), bytes);
    memcpy(to, buffer_.get() + begin_, now);
    consume(now);
    return now;
}

size_t TcpLink::skip(size_t bytes)
{
    if (!buffered()) fill(1);
    const size_t now = std::min(buffered(), bytes);
    consume(now);
    return now;
}

}  // namespace yoke::cpu::comm
