// Messages between ranks. All their formats are defined here.
//
// Contract
//  * Numbers have the machine's byte order. By Hello's mark, a rank detects a machine of the other byte order.
//  * Each direction between two ranks is a stream of bytes. In it, messages follow each other: a Header, then the
//    bytes of the call. Both sides know the number of bytes from the signature. Each part of a message is padded to
//    kPad bytes, so elements read in place are aligned.
#pragma once

#include <cstdint>

#include "core/backend/comm.h"

namespace yoke::cpu::comm {

constexpr uint64_t kPad = 16;

constexpr uint64_t padded(uint64_t bytes)
{
    return (bytes + kPad - 1) / kPad * kPad;
}

constexpr uint32_t kHeaderMark = 0x316b6f59;  // "Yok1"
constexpr uint32_t kNoSegment = 0xffffffffu;

// Goes ahead of the data of each call.
struct Header {
    uint32_t mark = kHeaderMark;
    uint32_t segment = kNoSegment;  // mem_alloc region of the caller's tensor, in and out alike
    yoke_comm_signature signature = {};
    uint64_t offset = 0;  // place in the region
};
static_assert(sizeof(Header) == 64 && sizeof(Header) % kPad == 0);

// Secret of a communicator. A process with the secret got it from a rank.
struct Cookie {
    uint8_t bytes[32];
};

constexpr uint64_t kHelloMark = 0x316d6d6f636b6f79;  // "yokcomm1"

// The first bytes of each connection, both ways.
struct Hello {
    uint64_t mark = kHelloMark;
    Cookie cookie = {};
    int32_t from = 0;
    int32_t to = 0;
    int32_t lane = 0;  // number among several connections to a peer
    int32_t reserved = 0;
};
static_assert(sizeof(Hello) == 56);

// Data published by each rank before ranks connect: first the place, which decides where ranks must listen; then the
// open sockets.
struct Place {
    char node[120];
    int32_t shares_memory;
    int32_t free_mib;         // memory of the host; 0: not known
    uint64_t processors[16];  // bit for each processor of this rank; all 0: unknown
};

struct Doors {
    char address[64];  // address of the TCP port
    char local[40];    // an abstract Unix socket; "": none
    uint16_t port;     // 0: none
    uint16_t failed;   // this rank cannot go on
    uint32_t reserved;
};

}  // namespace yoke::cpu::comm
