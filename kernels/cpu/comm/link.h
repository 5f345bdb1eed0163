// One way to one peer: a stream of bytes to it and one from it, driven by the calling thread alone.
//
// Contract
//  * Nothing here waits. write, peek and read do what can be done now; what a caller must wait for is told by
//    poll_wants (a socket) or by the doorbell (shared memory).
//  * An end of the stream shows as is_closed(); what came before it can still be read. After that nothing more comes
//    and nothing can be sent.
//  * One thread at a time.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>

namespace yoke::cpu::comm {

// The most that peek is asked for: what is combined in one go.
constexpr size_t kChunkBytes = 128 << 10;

class Link {
public:
    virtual ~Link() = default;

    // Takes bytes of the parts, in their order, and returns how many. A part without an address is filling: its bytes
    // may be anything.
    virtual size_t write(const iovec *parts, int count) = 0;
    // The next bytes of the stream, one behind the other, or null while so many are not there. Good until consume.
    virtual const char *peek(size_t bytes) = 0;
    virtual void consume(size_t bytes) = 0;  // at most what peek gave
    // Moves up to `bytes` of the stream to where they belong, and returns how many.
    virtual size_t read(char *to, size_t bytes) = 0;
    // Passes over up to `bytes` of it.
    virtual size_t skip(size_t bytes) = 0;

    // The socket that tells of the peer's end; of a link over sockets also of its bytes.
    virtual int socket() const = 0;
    virtual bool is_shared_memory() const = 0;
    bool is_closed() const { return closed_; }
    void close() { closed_ = true; }

private:
    bool closed_ = false;
};

}  // namespace yoke::cpu::comm
