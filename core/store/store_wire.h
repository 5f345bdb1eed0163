// store_wire.h: the protocol of a store's client and server: frames of a header and some fields.
//
// A request has a number, and its answer has the same number; answers come in any order. The first frame of a
// connection is the client's kHello. Its beginning, with the protocol's version, never changes. Numbers are
// little-endian.
#pragma once

#include "core/store/socket.h"
#include "core/store/store_peer.h"

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace yoke::wire {

inline constexpr uint32_t kVersion = 3;
inline constexpr size_t kLongestHello = 640;            // a cookie and a line about the process
inline constexpr size_t kLongestWelcome = 4096;         // also for a refusal
inline constexpr uint64_t kMagic = 0x31524f54534b4f59;  // "YOKSTOR1", the number of every kHello

enum class Kind : uint32_t {
    kHello = 1,  // version, rank, cookie, about, start
    kSet,        // key, value
    kGet,        // key; the answer comes when the key is there
    kWait,       // keys; the answer comes when all are there
    kAdd,        // key, delta
    kTryGet,     // key
    kSetOnce,    // key, value
    kRemove,     // keys
    kCancel,     // no answer to the request of this number is waited for any more but kMissing
    kPing,
    kBye,             // from either side; from a rank that fails at its beginning: the reason
    kWhenSet,         // key; like kGet, but no call waits
    kWelcome = 0x40,  // to kHello
    kOtherJob,        // to kHello: why
    kRefused,         // to kHello: why
    kAnswer,          // the requested texts
    kNothing,         // there is no such key
    kMissing,         // to kCancel: the missing keys
    kFailed,          // status, text
    kPong,
    kComplete,  // to kHello: the server's name; all ranks of the job are there
    kFormer,    // like kComplete, and the greeting process was a rank before
};

struct Header {
    uint32_t bytes;  // after the header
    Kind kind;
    uint64_t number;
};
static_assert(sizeof(Header) == 16);

// Writer of a frame: the fields in order.
class Writer {
public:
    explicit Writer(Kind kind, uint64_t request = 0);
    Writer &text(std::string_view text);
    Writer &number(int64_t number);
    Writer &request(uint64_t number);
    std::string take() &&;

private:
    std::string bytes_;
};

// Received frame. A missing field reads as empty, and is_whole() is false from then on.
class Reader {
public:
    Reader(const Header &header, std::string_view body) : header_(header), left_(body) {}
    Kind kind() const noexcept { return header_.kind; }
    uint64_t request() const noexcept { return header_.number; }
    std::string text();
    int64_t number();
    bool is_whole() const noexcept { return is_whole_; }
    bool is_at_end() const noexcept { return left_.empty(); }

private:
    Header header_;
    std::string_view left_;
    bool is_whole_ = true;
};

struct Frame {
    Header header;
    std::string body;
    Reader reader() const { return {header, body}; }
};

// Receives a frame before the watch serves the socket. Returns nullopt at the deadline, at the connection's end, on
// an error, or for a frame longer than `longest`.
std::optional<Frame> receive_frame(int socket, size_t longest, Deadline deadline);
std::string hello(const PeerOptions &options);

}  // namespace yoke::wire
