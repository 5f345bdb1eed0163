// rendezvous.h: the way from the environment to a store to which all ranks of a job are connected.
//
// Rank 0 serves. The other ranks try to connect until the deadline. Then all ranks check in, see
// core/rendezvous/check_in.h. Once a job is complete, its server accepts no more ranks. A late rank learns which job
// owns the server, and the job goes on.
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
    std::string build;  // build of Yoke with its table of ops: alike on all ranks
    std::string
        device;  // kind, model and driver of this rank's device; rank 0 warns if devices differ
    PeerObserver observer;  // observer of the connections, once all ranks are there
    Lookup variable = process_variable;
    LauncherLookup launcher = process_launcher;
    HostStore *host_store = nullptr;  // store for finding rank 0; borrowed for the call
    double silence_s = -1;            // below 0: YOKE_COMM_SILENCE
};

struct Rendezvous {
    int32_t rank = 0, size = 1;
    std::vector<RankInfo> ranks;   // by rank
    std::shared_ptr<Store> store;  // store with this start of the job in front of all keys
    std::string source;            // Environment::source
    std::string told;              // describe(Environment)
    std::shared_ptr<Store> file;   // store of file://, held to keep other jobs out of the file
    std::shared_ptr<StoreServer>
        server;  // rank 0's server, if rank 0 serves; the other ranks' stores depend on it

    // Number of groups of all ranks made here. Each rank has its own counter.
    std::shared_ptr<std::atomic<int>> groups = std::make_shared<std::atomic<int>>(0);

    int32_t server_rank = 0;                  // serving process's rank, as in Members::met_as
    std::shared_ptr<StoreServer> doorkeeper;  // a shrunk group's server for notices to late ranks

    const RankInfo &self() const { return ranks[static_cast<size_t>(rank)]; }
};

// Returns the rendezvous as a shared object. If this process serves the store, the last release waits until the other
// ranks have left. They may still read the store, such as the end of a split. The wait is a few seconds at most: a
// rank may go on without its groups and never leave.
std::shared_ptr<const Rendezvous> hold(Rendezvous met);
// Excuses the former ranks of a shrunk group, if this process serves the store. These ranks read no more from the
// server, so the server does not wait for them. come_back_to() ends this when the ranks make a group there, or wait
// in a monitored barrier.
void go_on_from(const Rendezvous &met, const std::vector<int32_t> &ranks);
void come_back_to(const Rendezvous &met);
// Shortens the last release's wait to a moment, if this is the last reference. Called for a group that was not made:
// its ranks have read the cause, or are late.
void leave_soon(const std::shared_ptr<const Rendezvous> &met) noexcept;
// Gives up a shrunk group whose making failed. Its servers accept no more ranks, so the ranks reach the next server
// at the same port when they try again. Shortens the wait as leave_soon() does.
void give_up(const std::shared_ptr<const Rendezvous> &met) noexcept;
// Waits at the end of the process until the other ranks have left all stores that this process serves, `seconds` in
// all.
void leave_all_rendezvous(double seconds) noexcept;

// Returns YOKE_COMM_SILENCE in seconds, or 0 if the text is no number.
double configured_silence();

// Joins the job and returns its rendezvous. Raises YOKE_E_VALUE for an error in this rank's own arguments or
// environment. On all ranks that reach rank 0, raises YOKE_E_TIMEOUT and YOKE_E_COMM alike.
Rendezvous meet(const RendezvousOptions &options);

}  // namespace yoke
