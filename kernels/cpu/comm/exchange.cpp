// Calls that move elements unchanged.
//
// A part for all ranks of other nodes crosses to each node once, to a single rank there (the carrier). The carrier
// forwards the part to its neighbours as bytes arrive. Calls with different content for every pair of ranks send
// directly.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

namespace {

// Call with the sizes for its algorithm.
struct Exchange {
    Comm &comm;
    Flow &flow;
    const yoke_collective &call;
    uint64_t bytes = static_cast<uint64_t>(call.count) * dtype_bytes(call.dtype);  // size of a part
    const char *in = static_cast<const char *>(call.in);
    char *out = static_cast<char *>(call.out);
    int rank = comm.rank;

    const char *in_part(int i) const { return in + static_cast<uint64_t>(i) * bytes; }
    char *out_part(int i) const { return out + static_cast<uint64_t>(i) * bytes; }
    template <class F>
    void each_peer(const F &f) const
    {
        for (int i = 1; i < comm.size; ++i) f((rank + i) % comm.size);
    }
    // Sends a part from `source` on to `peer`, chunk by chunk as the part arrives.
    void forward(int peer, int source, const char *data, uint64_t size) const
    {
        for (uint64_t at = 0; at < size; at += kChunkBytes) {
            const uint64_t now = std::min<uint64_t>(kChunkBytes, size - at);
            flow.send(peer, data + at, now, &flow.lane(source).stored, at + now);
        }
    }
};

void move_part(void *to, const void *from, uint64_t bytes)
{
    if (bytes && to != from) memmove(to, from, bytes);
}

// Returns the rank of `node` that receives part `source` for the node.
int carrier(const Layout &layout, size_t node, int source)
{
    const auto &ranks = layout.nodes[node];
    return ranks[static_cast<size_t>(layout.index_of[source]) % ranks.size()];
}

// ---- all_gather -----------------------------------------------------------------------------------------------------

// Returns whether `receiver` gets the part of `source` from `sender`.
bool brings(const Layout &layout, int sender, int receiver, int source)
{
    if (source == receiver) return false;
    const auto node = static_cast<size_t>(layout.node_of[receiver]);
    if (layout.node_of[source] == layout.node_of[receiver]) return sender == source;
    const int taker = carrier(layout, node, source);
    return taker == receiver ? sender == source : sender == taker;
}

// Adds the steps of a link, in the order of the parts. A rank's own part comes first, because other ranks wait for
// this part.
void all_gather_steps(const Exchange &x, int sender, int receiver, int peer)
{
    const Layout &layout = x.comm.layout;
    for (int i = 0; i < x.comm.size; ++i) {
        const int source = i == 0 ? sender : i <= sender ? i - 1 : i;
        if (!brings(layout, sender, receiver, source)) continue;
        if (peer == sender)
            x.flow.receive(peer, x.out_part(source), x.bytes);
        else if (source == sender)
            x.flow.send(peer, x.out_part(source), x.bytes);
        else
            x.forward(peer, source, x.out_part(source), x.bytes);
    }
}

yoke_status all_gather(const Exchange &x)
{
    move_part(x.out_part(x.rank), x.in, x.bytes);
    x.each_peer([&](int peer) {
        all_gather_steps(x, x.rank, peer, peer);
        all_gather_steps(x, peer, x.rank, peer);
    });
    return x.flow.run();
}

// ---- broadcast ------------------------------------------------------------------------------------------------------

// Slices of a broadcast. The root sends a slice to each other rank, and these ranks exchange the slices. So the root
// sends every byte once.
struct Slices {
    uint64_t bytes, each;
    Slices(uint64_t whole, size_t others)
        : bytes(whole), each((whole / others + kChunkBytes - 1) / kChunkBytes * kChunkBytes)
    {
    }
    uint64_t begin(size_t i) const { return std::min(bytes, i * each); }
    uint64_t size(size_t i) const { return begin(i + 1) - begin(i); }
};

void broadcast_root_steps(const Exchange &x, const std::vector<int> &others)
{
    const Slices slices(x.bytes, others.size());
    for (size_t i = 0; i < others.size(); ++i)
        x.flow.send(others[i], x.out + slices.begin(i), slices.size(i));
}

void broadcast_other_steps(const Exchange &x, int root, const std::vector<int> &others)
{
    const Slices slices(x.bytes, others.size());
    const auto me =
        static_cast<size_t>(std::find(others.begin(), others.end(), x.rank) - others.begin());
    x.flow.receive(root, x.out + slices.begin(me), slices.size(me));
    for (size_t i = 0; i < others.size(); ++i) {
        if (i == me) continue;
        x.forward(others[i], root, x.out + slices.begin(me), slices.size(me));
        x.flow.receive(others[i], x.out + slices.begin(i), slices.size(i));
    }
}

void broadcast_steps(const Exchange &x, int root, const std::vector<int> &team)
{
    std::vector<int> others;
    for (int rank : team)
        if (rank != root) others.push_back(rank);
    if (others.empty()) return;
    if (x.rank == root)
        broadcast_root_steps(x, others);
    else
        broadcast_other_steps(x, root, others);
}

yoke_status broadcast_small(const Exchange &x)
{
    if (x.rank != x.call.peer)
        x.flow.receive(x.call.peer, x.out, x.bytes);
    else
        x.each_peer([&](int peer) { x.flow.send(peer, x.out, x.bytes); });
    return x.flow.run();
}

// Broadcasts to a single rank of each node, then within each node. A small tensor goes directly from the root to all
// ranks.
yoke_status broadcast(const Exchange &x)
{
    if (x.bytes <= kChunkBytes) return broadcast_small(x);
    const Layout &layout = x.comm.layout;
    const int root = x.call.peer, home = layout.node_of[root];
    std::vector<int> leaders;
    for (size_t node = 0; node < layout.nodes.size(); ++node)
        leaders.push_back(static_cast<int>(node) == home ? root : layout.nodes[node][0]);
    const auto mine = static_cast<size_t>(layout.node_of[x.rank]);
    if (leaders.size() > 1) {
        if (leaders[mine] == x.rank) broadcast_steps(x, root, leaders);
        if (yoke_status status = x.flow.run()) return status;
        x.flow.next();
    }
    broadcast_steps(x, leaders[mine], layout.nodes[mine]);
    return x.flow.run();
}

// ---- calls that send directly ---------------------------------------------------------------------------------------

yoke_status gather(const Exchange &x)
{
    const int root = x.call.peer;
    if (x.rank != root) {
        x.flow.send(root, x.in, x.bytes);
        return x.flow.run();
    }
    move_part(x.out_part(root), x.in, x.bytes);
    x.each_peer([&](int peer) { x.flow.receive(peer, x.out_part(peer), x.bytes); });
    return x.flow.run();
}

yoke_status scatter(const Exchange &x)
{
    const int root = x.call.peer;
    if (x.rank != root) {
        x.flow.receive(root, x.out, x.bytes);
        return x.flow.run();
    }
    x.each_peer([&](int peer) { x.flow.send(peer, x.in_part(peer), x.bytes); });
    if (yoke_status status = x.flow.run()) return status;
    move_part(x.out, x.in_part(root), x.bytes);  // last, since it may overwrite another part
    return YOKE_OK;
}

// Sends a part to every rank and receives a part from every rank. In place, received parts would overwrite parts not
// sent yet. So the call then sends from a copy.
yoke_status all_to_all(Exchange &x)
{
    if (x.in == x.out && x.bytes) {
        const uint64_t whole = x.bytes * static_cast<uint64_t>(x.comm.size);
        char *copy = x.comm.staging.reserve(whole);
        memcpy(copy, x.in, whole);
        x.in = copy;
    }
    x.each_peer([&](int peer) {
        x.flow.send(peer, x.in_part(peer), x.bytes);
        x.flow.receive(peer, x.out_part(peer), x.bytes);
    });
    move_part(x.out_part(x.rank), x.in_part(x.rank), x.bytes);
    return x.flow.run();
}

}  // namespace

yoke_status run_exchange(Comm &comm, const yoke_collective &call)
{
    Flow &flow = *comm.flow;
    flow.begin(call);
    flow.greet_all();
    Exchange x{comm, flow, call};
    switch (call.op) {
        case YOKE_COMM_BARRIER:
            return flow.run();
        case YOKE_COMM_BROADCAST:
            return broadcast(x);
        case YOKE_COMM_ALL_GATHER:
            return all_gather(x);
        case YOKE_COMM_GATHER:
            return gather(x);
        case YOKE_COMM_SCATTER:
            return scatter(x);
        default:
            return all_to_all(x);
    }
}

yoke_status run_messages(Comm &comm, const yoke_collective *calls, size_t count)
{
    Flow &flow = *comm.flow;
    flow.begin(calls[0]);
    for (size_t i = 0; i < count; ++i) {
        const yoke_collective &call = calls[i];
        const uint64_t bytes = static_cast<uint64_t>(call.count) * dtype_bytes(call.dtype);
        Header &header = i == 0 ? flow.header() : flow.add_header(*call.signature);
        if (call.op == YOKE_COMM_SEND) {
            flow.send_header(call.peer, header);
            flow.send(call.peer, call.in, bytes);
        } else {
            flow.expect_header(call.peer, header);
            flow.receive(call.peer, call.out, bytes);
        }
    }
    return flow.run();
}

}  // namespace yoke::cpu::comm
