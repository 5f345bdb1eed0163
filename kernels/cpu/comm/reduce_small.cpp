// Small tensors: one exchange, after which each rank adds everything up by itself, in the same order.
#include "kernels/cpu/comm/reduction.h"

namespace yoke::cpu::comm {

// Adds up what all ranks have sent, node by node. Rank i's elements stand at `from` + i * count, this one's at `own`.
static void combine_all(const Reduction &r, const char *from, const char *own, int64_t count,
                        char *to)
{
    const auto &nodes = r.comm.layout.nodes;
    const auto at = [&](int rank) {
        return static_cast<const void *>(rank == r.rank ? own : from + rank * count * r.unit);
    };
    std::vector<const void *> inputs;
    Combination how = r.how(false, !r.is_flat());
    how.count = count;
    char *partials =
        r.comm.partials.reserve(nodes.size() * static_cast<uint64_t>(count * r.partial_unit()));
    for (size_t node = 0; node < nodes.size(); ++node) {
        if (!r.is_flat()) inputs.clear();
        for (int rank : nodes[node]) inputs.push_back(at(rank));
        if (r.is_flat() && node + 1 < nodes.size()) continue;
        how.inputs = inputs.data();
        how.input_count = static_cast<int32_t>(inputs.size());
        how.out =
            r.is_flat() ? to : partials + static_cast<int64_t>(node) * count * r.partial_unit();
        r.comm.combine(how);
    }
    if (r.is_flat()) return;
    how = r.how(true, false);
    inputs.clear();
    for (size_t node = 0; node < nodes.size(); ++node)
        inputs.push_back(partials + static_cast<int64_t>(node) * count * r.partial_unit());
    how.inputs = inputs.data();
    how.input_count = static_cast<int32_t>(inputs.size());
    how.count = count;
    how.out = to;
    r.comm.combine(how);
}

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
    if (takes && count)
        combine_all(r, from, r.in + (scatters ? r.rank * count * r.unit : 0), count, r.out);
    return YOKE_OK;
}

}  // namespace yoke::cpu::comm
