// What ranks write to each other: the one place that says it.
//
// Contract
//  * Numbers lie as in memory; Hello's mark tells a host of the other byte order from one of ours.
//  * Each way between two ranks is a stream of bytes in which messages follow one another: a Header, then the bytes of
//    the call, whose number both sides know from the signature. Each part of a message is filled up to kPad bytes, so
//    that elements lie aligned wherever they are read in place.
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
    uint32_t segment =
        kNoSegment;  // of mem_alloc, in which the caller's tensor lies, in and out alike
    yoke_comm_signature signature = {};
    uint64_t offset = 0;  // there
};
static_assert(sizeof(Header) == 64 && sizeof(Header) % kPad == 0);

// The secret of a communicator: who knows it was told by one of its ranks.
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
    int32_t lane = 0;  // of several connections to one peer
    int32_t reserved = 0;
};
static_assert(sizeof(Hello) == 56);

// What each rank publishes before any connects. First where it stands; then, since who must listen where follows from
// that, the doors that it has opened.
struct Place {
    char node[120];
    int32_t shares_memory;
    int32_t free_mib;         // memory of the host; 0: not known
    uint64_t processors[16];  // a bit for each that this rank may run on; none: they are not known
};

struct Doors {
    char address[64];  // of the TCP port
    char local[40];    // an abstract Unix socket; "": none
    uint16_t port;     // 0: none
    uint16_t failed;   // this rank cannot go on
    uint32_t reserved;
};

}  // namespace yoke::cpu::comm
