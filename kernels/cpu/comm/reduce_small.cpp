// Small tensors: after one exchange, each rank adds all tensors by itself, in the same order.
#include "kernels/cpu/comm/reduction.h"

namespace yoke::cpu::comm {

namespace {

using Inputs = std::vector<const void *>;

// Elements sent by all ranks: rank i's elements are at `from` + i * count, this rank's elements at `own`.
struct Sent {
    const Reduction &r;
    const char *from, *own;
    int64_t count;

    void add(int rank, Inputs *inputs) const
    {
        inputs->push_back(rank == r.rank ? own : from + rank * count * r.unit);
    }
    void combine(Combination how, const Inputs &inputs, char *to) const
    {
        how.inputs = inputs.data();
        how.input_count = static_cast<int32_t>(inputs.size());
        how.count = count;
        how.out = to;
        r.comm.combine(how);
    }
};

void combine_flat(const Sent &sent, char *to)
{
    Inputs inputs;
    for (const auto &node : sent.r.comm.layout.nodes)
        for (int rank : node) sent.add(rank, &inputs);
    sent.combine(sent.r.how(false, false), inputs, to);
}

// Combines the elements of each node, then the nodes' partial results.
void combine_nodes(const Sent &sent, char *to)
{
    const Reduction &r = sent.r;
    const auto &nodes = r.comm.layout.nodes;
    const int64_t each = sent.count * r.partial_unit();
    char *partial = r.comm.partials.reserve(nodes.size() * static_cast<uint64_t>(each));
    Inputs inputs, partials;
    for (const auto &node : nodes) {
        inputs.clear();
        for (int rank : node) sent.add(rank, &inputs);
        sent.combine(r.how(false, true), inputs, partial);
        partials.push_back(partial);
        partial += each;
    }
    sent.combine(r.how(true, false), partials, to);
}

}  // namespace

yoke_status reduce_small(Reduction &r)
{
    const int64_t count = r.call.count;
    const auto bytes = static_cast<uint64_t>(count * r.unit);
    const bool has_root = r.call.op == YOKE_COMM_REDUCE,
               scatters = r.call.op == YOKE_COMM_REDUCE_SCATTER;
    const bool takes = !has_root || r.rank == r.call.peer;
    char *from = r.comm.staging.reserve(takes ? bytes * static_cast<uint64_t>(r.comm.size) : 0);
    for (int i = 1; i < r.comm.size; ++i) {
        const int peer = (r.rank + i) % r.comm.size;
        if (!has_root || peer == r.call.peer)
            r.flow.send(peer, r.in + (scatters ? peer * count * r.unit : 0), bytes);
        if (takes) r.flow.receive(peer, from + peer * count * r.unit, bytes);
    }
    if (yoke_status status = r.flow.run()) return status;
    if (!takes || !count) return YOKE_OK;
    const Sent sent{r, from, r.in + (scatters ? r.rank * count * r.unit : 0), count};
    r.is_flat() ? combine_flat(sent, r.out) : combine_nodes(sent, r.out);
    return YOKE_OK;
}

}  // namespace yoke::cpu::comm
