// rendezvous.h: from what the environment says to a store that all ranks are connected to.
//
// Rank 0 serves, the others connect until the deadline. Then each checks in with what it is; rank 0 looks at all of
// them and its verdict is what every rank returns or raises: a rank that is missing, twice there, not below the size,
// of another size or build. Where no verdict comes in time each rank says by itself who is missing. Once a job is
// complete, whoever comes later is refused, and the job goes on.
#pragma once

#include "core/base/store_tcp.h"
#include "core/comm/environment.h"
#include "core/comm/node.h"

#include <memory>
#include <string>
#include <vector>

namespace yoke {

// A rank that has checked in.
struct Arrival {
    int32_t rank = 0, size = 1;
    std::string host;
    int64_t process = 0;
    std::string node, memory;  // as HostNode has them
    std::string address;       // of this host, on the connection to rank 0: where peers reach it
    std::string build;   // of Yoke, with its table of ops and its protocol: alike on all ranks
    std::string device;  // what the caller gave
    int32_t local_rank = 0,
            local_size = 1;  // among those of its node: the launcher's where all ranks have one
};
// "rank 1 (host a, process 4711)".
std::string describe(const Arrival &arrival);

struct RendezvousOptions {
    InitArguments arguments;
    double timeout_s = 300;
    std::string device;     // kind and model of this rank's device, which others are told
    PeerObserver observer;  // of the connections, from the first moment on
    Lookup variable = process_variable;
    std::shared_ptr<Store>
        store;  // the host's own, or that of threads: then nobody serves or connects
};

struct Rendezvous {
    int32_t rank = 0, size = 1;
    std::vector<Arrival> arrivals;           // by rank
    std::shared_ptr<Store> store;            // with a prefix of this job's and epoch's own
    std::string source;                      // Environment::source
    std::shared_ptr<TcpServerStore> server;  // rank 0's, where it serves

    const Arrival &self() const { return arrivals[static_cast<size_t>(rank)]; }
};

// Raises YOKE_E_VALUE for what is wrong with this rank's own arguments or environment, YOKE_E_TIMEOUT and YOKE_E_COMM
// alike on all ranks that live.
Rendezvous meet(const RendezvousOptions &options);

}  // namespace yoke
