// Links through shared memory, to ranks of the same node.
//
// Each rank owns a block of shared memory, mapped by all local peers. The block has the rank's doorbell, and for each
// peer a ring in which the peer writes to the rank. Beside each link is a Unix socket: the socket carried the
// descriptors, and its end shows the peer's death.
#pragma once

#include <memory>

#include "kernels/cpu/comm/doorbell.h"
#include "kernels/cpu/comm/link.h"
#include "kernels/cpu/comm/ring.h"

namespace yoke::cpu::comm {

// Block of a rank, as mapped in this process.
class Block {
public:
    // Returns the bytes of a block on a machine with so many ranks.
    static size_t bytes(size_t ranks)
    {
        return page_bytes() + (ranks - 1) * (page_bytes() + ring_bytes(ranks));
    }
    explicit Block(size_t ranks) : ring_bytes_(ring_bytes(ranks)) {}

    // Maps the first page of a block and the control words of ring number `ring`. map_ring maps the bytes of the
    // ring, twice.
    yoke_status map(int fd, int ring);
    yoke_status map_ring(int fd, int ring, Mapping *out) const;
    Bell &bell() const { return *reinterpret_cast<Bell *>(head_.data()); }
    RingWords *words() const { return reinterpret_cast<RingWords *>(words_.data()); }

private:
    size_t offset(int ring) const { return page_bytes() + ring * (page_bytes() + ring_bytes_); }

    size_t ring_bytes_;
    Mapping head_, words_;
};

// Link that sends through a ring in the peer's block and receives from a ring in this rank's block.
class ShmLink final : public Link {
public:
    // Takes both blocks with the words of both rings, the bytes of both rings, the peer's eventfd, and the socket to
    // the peer.
    ShmLink(Block mine, Mapping inward, Block theirs, Mapping outward, Descriptor event,
            Descriptor peer)
        : mine_(std::move(mine)),
          theirs_(std::move(theirs)),
          in_(mine_.words(), std::move(inward)),
          out_(theirs_.words(), std::move(outward)),
          event_(std::move(event)),
          peer_(std::move(peer))
    {
    }

    size_t write(const iovec *parts, int count) override;
    const char *peek(size_t bytes) override;
    void consume(size_t bytes) override;
    size_t read(char *to, size_t bytes) override;
    size_t skip(size_t bytes) override;
    int socket() const override { return peer_.get(); }
    bool is_shared_memory() const override { return true; }

private:
    Block mine_, theirs_;
    RingReader in_;
    RingWriter out_;
    Descriptor event_;  // eventfd of the peer
    Descriptor peer_;
};

}  // namespace yoke::cpu::comm
