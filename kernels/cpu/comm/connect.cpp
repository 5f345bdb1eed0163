// Start of a communicator. Every rank publishes its node and open sockets. Then the ranks connect, and ranks with
// shared memory pass their blocks to each other.
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/random.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "kernels/cpu/comm/connector.h"
#include "kernels/cpu/comm/node.h"
#include "kernels/cpu/comm/shm.h"
#include "kernels/cpu/comm/swap.h"
#include "kernels/cpu/comm/tcp.h"

namespace yoke::cpu::comm {

namespace {

// Returns the longest spin. If ranks share processors, a spinning rank takes time from the others, so the result is
// 0.
int64_t most_spin(const Place *places, const std::vector<int> &neighbours)
{
    constexpr int64_t kMostSpin = 50'000;
    const size_t processors = processors_of(places, neighbours);
    return processors && processors < neighbours.size() ? 0 : kMostSpin;
}

bool is_neighbour(const Comm &comm, int peer)
{
    return comm.layout.node_of[peer] == comm.layout.node_of[comm.rank];
}

// Objects kept open until all ranks have connected.
struct Entry {
    Doors doors = {};
    Descriptor tcp, local;
};

bool share(const Comm &comm, const std::vector<Place> &places, int a, int b)
{
    return comm.layout.node_of[a] == comm.layout.node_of[b] && places[a].shares_memory &&
           places[b].shares_memory;
}

const std::vector<int> &neighbours(const Comm &comm)
{
    return comm.layout
        .nodes[static_cast<size_t>(comm.layout.node_of[static_cast<size_t>(comm.rank)])];
}

// Returns the number of the ring in which `writer` writes, in the block of rank `owner`.
int ring_of(const Comm &comm, int owner, int writer)
{
    const int index = comm.layout.index_of[writer];
    return index - (index > comm.layout.index_of[owner]);
}

// Listens on the address by which peers know this machine. If the address belongs to another machine (behind a
// translation), listens on all addresses.
yoke_status open_tcp(const yoke_comm_member &init, Entry *entry)
{
    Name name;
    if (!init.address || !tcp_name(init.address, 0, &name))
        return fail(YOKE_E_VALUE, "cpu: '%s' is not a numeric address of this machine",
                    init.address ? init.address : "");
    if (!listen_at(name, &entry->tcp)) {
        tcp_name(strchr(init.address, ':') ? "::" : "0.0.0.0", 0, &name);
        if (!listen_at(name, &entry->tcp))
            return is_shortage()
                       ? fail_shortage("listen for the other ranks", init.rank)
                       : fail_system(YOKE_E_IO, "cpu: cannot listen on %s for the other ranks",
                                     init.address);
    }
    snprintf(entry->doors.address, sizeof entry->doors.address, "%s", init.address);
    entry->doors.port = port_of(entry->tcp.get());
    return YOKE_OK;
}

yoke_status open_local(Comm &comm, Entry *entry)
{
    uint64_t drawn[2] = {};
    if (getrandom(drawn, sizeof drawn, 0) != sizeof drawn)
        return fail_system(YOKE_E_IO, "cpu: cannot get random numbers from the system");
    snprintf(entry->doors.local, sizeof entry->doors.local, "yoke-%016llx%016llx",
             static_cast<unsigned long long>(drawn[0]), static_cast<unsigned long long>(drawn[1]));
    if (!listen_at(local_name(entry->doors.local), &entry->local))
        return fail_shortage("listen for the other ranks of this machine", comm.rank);
    const size_t ranks = neighbours(comm).size();
    if (yoke_status status = make_shared(Block::bytes(ranks), &comm.block)) return status;
    if (yoke_status status = map_shared(comm.block.get(), 0, page_bytes(), &comm.block_head))
        return status;
    comm.bell = reinterpret_cast<Bell *>(comm.block_head.data());
    return YOKE_OK;
}

// Compares the memory wanted by all ranks of this machine with the memory free before. Returns YOKE_E_OOM if the
// ranks want more. All ranks see the same numbers.
yoke_status check_memory(const Comm &comm, const std::vector<Place> &places)
{
    uint64_t wanted = 0, free_mib = UINT64_MAX;
    for (int rank : neighbours(comm)) {
        const Place &place = places[static_cast<size_t>(rank)];
        if (!place.shares_memory) continue;
        wanted += Block::bytes(neighbours(comm).size());
        if (place.free_mib) free_mib = std::min(free_mib, static_cast<uint64_t>(place.free_mib));
    }
    if (wanted >> 20 < free_mib) return YOKE_OK;
    return fail(
        YOKE_E_OOM,
        "cpu: the %zu ranks of this machine need %llu bytes of shared memory for their links, but only %llu are free; start fewer ranks, or set YOKE_COMM_SHM=0 to connect the ranks over TCP",
        neighbours(comm).size(), (unsigned long long)wanted, (unsigned long long)free_mib << 20);
}

yoke_status open_doors(Comm &comm, const std::vector<Place> &places, const yoke_comm_member &init,
                       Entry *entry)
{
    bool by_tcp = false, by_memory = false;
    for (int peer = 0; peer < comm.size; ++peer) {
        if (peer == comm.rank) continue;
        (share(comm, places, comm.rank, peer) ? by_memory : by_tcp) = true;
    }
    comm.event = Descriptor::made([] { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); });
    if (!comm.event) return fail_shortage("create an eventfd, which wakes it", comm.rank);
    if (by_tcp)
        if (yoke_status status = open_tcp(init, entry)) return status;
    if (!by_memory) return YOKE_OK;
    if (yoke_status status = check_memory(comm, places)) return status;
    return open_local(comm, entry);
}

yoke_status blame(const yoke_comm_member &init, yoke_status status, int32_t kind, int rank)
{
    if (init.fault) {
        init.fault->kind = kind;
        init.fault->rank = rank;
    }
    return status;
}

// Decides for each peer whether this rank waits for a connection or connects. Returns a failure if a peer could not
// open its sockets.
yoke_status plan(const Comm &comm, const std::vector<Place> &places,
                 const std::vector<Doors> &doors, const yoke_comm_member &init,
                 Connector &connector)
{
    for (int peer = 0; peer < comm.size; ++peer) {
        if (doors[peer].failed)
            return blame(
                init,
                fail(
                    YOKE_E_COMM,
                    "cpu: rank %d could not open its sockets for the group; see the error of that rank",
                    peer),
                YOKE_COMM_FAULT_DIED, peer);
        if (peer > comm.rank) connector.expect(peer);
        if (peer >= comm.rank) continue;
        Name name = local_name(doors[peer].local);
        if (!share(comm, places, comm.rank, peer) &&
            !tcp_name(doors[peer].address, doors[peer].port, &name))
            return fail(YOKE_E_VALUE, "cpu: rank %d published '%.63s', which is not an address",
                        peer, doors[peer].address);
        connector.seek(peer, name);
    }
    return YOKE_OK;
}

// Connects to every peer and appends each peer's socket to `sockets`, in the order of ranks. If a peer does not
// connect in time, blames this peer and returns YOKE_E_TIMEOUT.
yoke_status meet(Comm &comm, const std::vector<Place> &places, const std::vector<Doors> &doors,
                 const yoke_comm_member &init, Entry *entry, const Deadline &deadline,
                 std::vector<Descriptor> *sockets)
{
    Cookie cookie;
    memcpy(&cookie, init.id, sizeof cookie);
    Connector connector(comm.rank, comm.size, cookie);
    if (entry->tcp) connector.listen(std::move(entry->tcp));
    if (entry->local) connector.listen(std::move(entry->local));
    if (yoke_status status = plan(comm, places, doors, init, connector)) return status;
    int missing = -1;
    if (yoke_status status = connector.run(deadline, init, &missing))
        return missing < 0 ? status : blame(init, status, YOKE_COMM_FAULT_LATE, missing);
    for (int peer = 0; peer < comm.size; ++peer) sockets->push_back(connector.take(peer));
    return YOKE_OK;
}

yoke_status join_memory(Comm &comm, int peer, Descriptor *theirs, Descriptor socket)
{
    const size_t ranks = neighbours(comm).size();
    Block mine(ranks), other(ranks);
    Mapping in, out;
    const int inward = ring_of(comm, comm.rank, peer), outward = ring_of(comm, peer, comm.rank);
    yoke_status status = mine.map(comm.block.get(), inward);
    if (!status) status = mine.map_ring(comm.block.get(), inward, &in);
    if (!status) status = other.map(theirs[0].get(), outward);
    if (!status) status = other.map_ring(theirs[0].get(), outward, &out);
    if (status) return status;
    comm.links[peer] =
        std::make_unique<ShmLink>(std::move(mine), std::move(in), std::move(other), std::move(out),
                                  std::move(theirs[1]), std::move(socket));
    return YOKE_OK;
}

yoke_status open_links(Comm &comm, const std::vector<Place> &places,
                       std::vector<Descriptor> &sockets, const yoke_comm_member &init,
                       const Deadline &deadline)
{
    Swap swap(comm, deadline, init.timeout_s, &init);
    for (int peer = 0; peer < comm.size; ++peer) {
        if (peer == comm.rank) continue;
        if (share(comm, places, comm.rank, peer)) {
            swap.with(peer, sockets[peer].get());
            continue;
        }
        prepare_stream(sockets[peer].get(), is_neighbour(comm, peer));
        comm.links[peer] = std::make_unique<TcpLink>(std::move(sockets[peer]));
    }
    if (!comm.block) return YOKE_OK;
    const SwapNote note = {0, 0};
    if (yoke_status status = swap.run(note, {comm.block.get(), comm.event.get()})) return status;
    for (int peer = 0; peer < comm.size; ++peer) {
        if (peer == comm.rank || !share(comm, places, comm.rank, peer)) continue;
        if (yoke_status status =
                join_memory(comm, peer, swap.descriptors(peer), std::move(sockets[peer])))
            return status;
    }
    return YOKE_OK;
}

// Gathers the places of all ranks, then sets the layout and the longest spin.
yoke_status tell_places(Comm &comm, const yoke_comm_member &init, std::vector<Place> *places)
{
    const Place place = this_place();
    if (yoke_status status = init.all_gather(init.user, &place, sizeof place, places->data()))
        return status;
    comm.layout = layout_of(places->data(), init.size);
    comm.most_spin_ns = most_spin(places->data(), neighbours(comm));
    return YOKE_OK;
}

// Opens this rank's listening sockets and learns the sockets of all ranks. If a rank cannot open a socket, all ranks
// learn of the failure at once.
yoke_status tell_doors(Comm &comm, const std::vector<Place> &places, const yoke_comm_member &init,
                       Entry *entry, std::vector<Doors> *doors)
{
    const yoke_status opened = open_doors(comm, places, init, entry);
    entry->doors.failed = opened != YOKE_OK;
    const yoke_status told =
        init.all_gather(init.user, &entry->doors, sizeof entry->doors, doors->data());
    comm.address = entry->doors.address;
    return opened ? opened : told;
}

}  // namespace

yoke_status connect(Comm &comm, const yoke_comm_member &init)
{
    const Deadline deadline(init.timeout_s);
    const auto size = static_cast<size_t>(init.size);
    comm.rank = init.rank;
    comm.size = init.size;
    comm.patience_s = init.patience_s > 0 ? init.patience_s : init.timeout_s;
    comm.links.resize(size);
    std::vector<Place> places(size);
    std::vector<Doors> doors(size);
    Entry entry;
    if (yoke_status status = tell_places(comm, init, &places)) return status;
    if (yoke_status status = tell_doors(comm, places, init, &entry, &doors)) return status;
    std::vector<Descriptor> sockets;
    if (yoke_status status = meet(comm, places, doors, init, &entry, deadline, &sockets))
        return status;
    return open_links(comm, places, sockets, init, deadline);
}

}  // namespace yoke::cpu::comm
