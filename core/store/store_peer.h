// store_peer.h: options of both ends of a connection to rank 0's store, and the events that they report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace yoke {

// News of the rank at the other end of a connection.
struct PeerEvent {
    enum Kind {
        kJoined,  // reported to rank 0 only
        kLeft,    // with a goodbye message
        kEnded,   // without a goodbye message: died
        kSilent,  // missed heartbeats for silence_s; reported once, until the next kHeard
        kHeard,   // after a silence
        kRefused,  // rank 0 only: another process joined with a rank that is present, or from a newer start
        kShort,  // rank 0 only: its process cannot accept another rank, because a resource is missing
    };
    Kind kind;
    int32_t rank;
    double silent_s;    // for kSilent
    std::string about;  // rank's process: "host a, process 17"; "" for rank 0
    std::string
        how;  // "Connection reset by peer"; kRefused and kShort: the reason; kLeft: the rank's failure, or ""
};

// Observer, called in the watch thread without a lock until the end of its server or client. It returns soon. It may
// call when_set of any store, and calls of rank 0's store that do not wait.
using PeerObserver = std::function<void(const PeerEvent &)>;

struct PeerOptions {
    std::string
        cookie;  // alike on all ranks of a job, at most 256 bytes; other jobs are refused by it
    int64_t start = 0;      // restarts of the job: if two starts meet, the older start ends
    int32_t rank = 0;       // rank of this process
    int32_t size = 1;       // size of the job
    double silence_s = 0;   // 0: never
    double greeting_s = 5;  // time limit for a connection to name its rank
    PeerObserver observer;  // may be empty
    std::string
        about;  // this process, for refused ranks: "host node1, process 17"; at most 256 bytes
};

}  // namespace yoke
