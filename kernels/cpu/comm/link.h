// Connection to one peer: a stream of bytes in each direction, driven by the calling thread alone.
//
// Contract
//  * No function waits. write, peek and read do the work that is possible now. To wait, a caller uses poll (a socket)
//    or the doorbell (shared memory).
//  * When the stream ends, is_closed() is true. The bytes received before can still be read. After that, no more
//    bytes arrive, and sending is impossible.
//  * One thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace yoke::cpu::comm {

// Most bytes of a peek: the bytes combined at a time.
constexpr size_t kChunkBytes = 128 << 10;

class Link {
public:
    virtual ~Link() = default;

    // Sends as many bytes of the parts, in order, as possible now, and returns their number. A part without an
    // address is filling, with bytes of any value.
    virtual size_t write(const iovec *parts, int count) = 0;
    // Returns the next `bytes` bytes of the stream as a single run, or null if fewer bytes have arrived. The run is
    // valid until consume.
    virtual const char *peek(size_t bytes) = 0;
    virtual void consume(size_t bytes) = 0;  // at most the peeked bytes
    // Moves up to `bytes` of the stream to their destination, and returns the number of bytes.
    virtual size_t read(char *to, size_t bytes) = 0;
    // Skips up to `bytes` of the stream, and returns the number of skipped bytes.
    virtual size_t skip(size_t bytes) = 0;

    // Returns the socket that signals the peer's end. For a link over sockets, the socket also carries the bytes.
    virtual int socket() const = 0;
    virtual bool is_shared_memory() const = 0;
    bool is_closed() const { return closed_; }
    void close() { closed_ = true; }

private:
    bool closed_ = false;
};

}  // namespace yoke::cpu::comm
