// Calls that combine elements.
//
// A small tensor goes from each rank to every other rank, and every rank adds all tensors by itself: a single
// exchange. A large tensor is cut into slices, a slice for each rank of a node. A rank gets its slice from all ranks
// of the node and combines the slice in the order of ranks. With several nodes, the rank then combines the slice with
// the same slice of the other nodes, in the order of nodes. Results go back the same way, chunk by chunk. Both ways
// make the same additions.
#include <cstring>

#include "kernels/cpu/comm/reduction.h"

namespace yoke::cpu::comm {

namespace {

// Largest total size of a call if tensors go to every rank whole.
constexpr uint64_t kSmallBytes = 32 << 10;

yoke_status all_reduce_flat(Reduction &r)
{
    Stage stage{r, r.everyone(), r.how(false, false), r.unit, r.unit, {}, {}};
    const Cut cut(r.call.count, stage.team.size());
    const bool has_root = r.call.op == YOKE_COMM_REDUCE, is_root = r.rank == r.call.peer;
    char *kept = r.out;  // buffer for a slice of the root's result
    if (has_root && !is_root)
        kept = r.comm.partials.reserve(static_cast<uint64_t>(cut.size(stage.me()) * r.unit));
    for (size_t i = 0; i < stage.team.size(); ++i) {
        const int64_t begin = cut.begin(i) * r.unit;
        char *out = !has_root || is_root ? r.out + begin : i == stage.me() ? kept : nullptr;
        stage.pieces.push_back({r.in + begin, out, cut.size(i)});
        stage.gets_mine.push_back(!has_root || stage.team[i] == r.call.peer);
    }
    return stage.run();
}

yoke_status reduce_scatter_flat(Reduction &r)
{
    Stage stage{r, r.everyone(), r.how(false, false), r.unit, r.unit, {}, {}};
    const int64_t bytes = r.call.count * r.unit;
    const char *own = r.in + r.rank * bytes;
    // If the result would overwrite parts not sent yet, the result goes to a buffer first.
    const bool lies_within =
        r.out != own && r.out < r.in + r.comm.size * bytes && r.out + bytes > r.in;
    char *out = lies_within ? r.comm.partials.reserve(static_cast<uint64_t>(bytes)) : r.out;
    for (int peer : stage.team) {
        stage.pieces.push_back({r.in + peer * bytes, peer == r.rank ? out : nullptr, r.call.count});
        stage.gets_mine.push_back(false);
    }
    const yoke_status status = stage.run();
    if (!status && lies_within) memcpy(r.out, out, static_cast<size_t>(bytes));
    return status;
}

}  // namespace

yoke_status run_reduction(Comm &comm, const yoke_collective &call)
{
    bool greeted = false, done = false;
    comm.flow->begin(call);
    Reduction r{comm, *comm.flow, call};
    const bool scatters = call.op == YOKE_COMM_REDUCE_SCATTER;
    const auto bytes = static_cast<uint64_t>(call.count * r.unit);
    const bool is_small = comm.size == 1 || bytes * static_cast<uint64_t>(comm.size) <= kSmallBytes;
    if (call.op == YOKE_COMM_ALL_REDUCE && !is_small)
        if (yoke_status status = all_reduce_in_place(comm, call, &greeted, &done); status || done)
            return status;
    if (!greeted) comm.flow->greet_all();
    if (is_small) return reduce_small(r);
    if (!scatters) return r.is_flat() ? all_reduce_flat(r) : reduce_nodes(r);
    return r.is_flat() ? reduce_scatter_flat(r) : reduce_scatter_nodes(r);
}

}  // namespace yoke::cpu::comm
