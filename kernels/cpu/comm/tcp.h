// Links over TCP: to ranks of other nodes, and to ranks of this node if shared memory is off.
#pragma once

#include <memory>

#include "kernels/cpu/comm/descriptor.h"
#include "kernels/cpu/comm/link.h"

namespace yoke::cpu::comm {

class TcpLink final : public Link {
public:
    // Takes a connected, non-blocking socket.
    explicit TcpLink(Descriptor socket)
        : socket_(static_cast<Descriptor &&>(socket)), buffer_(new char[kBufferBytes])
    {
    }
    ~TcpLink() override;

    size_t write(const iovec *parts, int count) override;
    const char *peek(size_t bytes) override;
    void consume(size_t bytes) override;
    size_t read(char *to, size_t bytes) override;
    size_t skip(size_t bytes) override;
    int socket() const override { return socket_.get(); }
    bool is_shared_memory() const override { return false; }

private:
    // Bytes received ahead of a request: a header with a small message after it.
    static constexpr size_t kAheadBytes = 8 << 10;
    static constexpr size_t kBufferBytes = kChunkBytes + kAheadBytes;

    size_t buffered() const { return end_ - begin_; }
    size_t receive(char *to, size_t bytes);
    bool fill(size_t wanted);

    Descriptor socket_;
    std::unique_ptr<char[]> buffer_;
    size_t begin_ = 0, end_ = 0;
};

}  // namespace yoke::cpu::comm
