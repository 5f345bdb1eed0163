// store_peer.h: what both ends of a connection to rank 0's table are told, and tell of each other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace yoke {

// What a connection tells of the rank at its other end.
struct PeerEvent {
    enum Kind {
        kJoined,   // rank 0 alone is told
        kLeft,     // with a farewell
        kEnded,    // without: it has died
        kSilent,   // nothing came for silence_s; once, until it is heard again
        kHeard,    // after a silence
        kRefused,  // rank 0 alone: another process came as a rank that is there, or of a newer start
        kShort,    // rank 0 alone: its own process lacks what it needs to accept another rank
    };
    Kind kind;
    int32_t rank;
    double silent_s;    // of kSilent
    std::string about;  // its process: "host a, process 17"; "" where it is rank 0's
    std::string
        how;  // "Connection reset by peer"; of kRefused and kShort why; of kLeft with what it failed, or ""
};

// Called in the watch thread, with no lock held, until the end of its server or client; returns soon. It may call
// when_set of any store, and all of rank 0's table that does not wait.
using PeerObserver = std::function<void(const PeerEvent &)>;

struct PeerOptions {
    std::string
        cookie;  // alike on all ranks of a job, at most 256 bytes; other jobs are refused by it
    int64_t start = 0;      // how often the job was started again: of two starts the older one ends
    int32_t rank = 0;       // of who opens it
    int32_t size = 1;       // of the job
    double silence_s = 0;   // 0: never
    double greeting_s = 5;  // in which a connection to a server has to say who it is
    PeerObserver observer;  // may be empty
    std::string
        about;  // this process, for those that are refused: "host node1, process 17"; at most 256 bytes
};

}  // namespace yoke
