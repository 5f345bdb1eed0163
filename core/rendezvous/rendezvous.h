// rendezvous.h: from what the environment says to a store that all ranks of a job are connected to.
//
// Rank 0 serves, the others connect, again and again until the deadline. Then all check in: see
// core/rendezvous/check_in.h. Once a job is complete its server takes nobody else; whoever comes later is told whose it
// is, and the job goes on.
#pragma once

#include "core/rendezvous/check_in.h"
#include "core/rendezvous/environment.h"
#include "core/rendezvous/host_store.h"
#include "core/store/store_peer.h"
#include "core/store/store_server.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace yoke {

struct RendezvousOptions {
    InitArguments arguments;
    Deadline deadline = Deadline::after(300);
    std::string build;  // of Yoke, with its table of ops: all ranks must have the same
    std::string
        device;  // kind, model and driver of this rank's device; rank 0 warns of unlike ones
    PeerObserver observer;  // of the connections, once all ranks are there
    Lookup variable = process_variable;
    LauncherLookup launcher = process_launcher;
    HostStore *host_store = nullptr;  // by which ranks find rank 0; borrowed for the call
    double silence_s = -1;            // below 0: YOKE_COMM_SILENCE
};

struct Rendezvous {
    int32_t rank = 0, size = 1;
    std::vector<RankInfo> ranks;   // by rank
    std::shared_ptr<Store> store;  // whose keys have this start of the job in front of them
    std::string source;            // Environment::source
    std::string told;              // describe(Environment)
    std::shared_ptr<Store> file;   // of file://, held so that jobs of others keep out of it
    std::shared_ptr<StoreServer>
        server;  // rank 0's, where it serves; the store is of no use to others without it

    // The groups of all ranks that were made here, which each of them counts.
    std::shared_ptr<std::atomic<int>> groups = std::make_shared<std::atomic<int>>(0);

    int32_t server_rank = 0;                  // whose process that is, as Members::met_as has it
    std::shared_ptr<StoreServer> doorkeeper;  // of a shrunk group: tells those that come too late

    const RankInfo &self() const { return ranks[static_cast<size_t>(rank)]; }
};

// What ranks still read of rank 0's table, such as the end of a split, they read before it goes: who lets go last waits
// for them to leave, some seconds at most, since who goes on without its groups may never do.
std::shared_ptr<const Rendezvous> hold(Rendezvous met);
// By ranks of a group that was shrunk: they read nothing more there, and are not waited for; until a group is made or
// meets there again.
void go_on_from(const Rendezvous &met, const std::vector<int32_t> &ranks);
void come_back_to(const Rendezvous &met);
// Of a group that was not made, if nobody else holds it: its ranks have read the cause, or are late themselves.
void leave_soon(const std::shared_ptr<const Rendezvous> &met) noexcept;
// The same of a shrunk one, whose ranks come to the same ports when they try again.
void give_up(const std::shared_ptr<const Rendezvous> &met) noexcept;
// All that are held, at the end of the process.
void leave_all_rendezvous(double seconds) noexcept;

// YOKE_COMM_SILENCE.
double configured_silence();

// Raises YOKE_E_VALUE for what is wrong with this rank's own arguments or environment; YOKE_E_TIMEOUT and YOKE_E_COMM
// alike on all ranks that reach rank 0.
Rendezvous meet(const RendezvousOptions &options);

}  // namespace yoke
