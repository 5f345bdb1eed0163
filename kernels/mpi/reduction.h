// Call that combines elements.
#pragma once

#include "kernels/mpi/parts.h"

namespace yoke::mpi {

struct Reduction {
    Comm &comm;
    Flow &flow;
    const yoke_collective &call;
    int64_t unit = kernels::dtype_bytes(call.dtype);
    const char *in = static_cast<const char *>(call.in);
    char *out = static_cast<char *>(call.out);

    bool is_root() const { return call.op != YOKE_COMM_REDUCE || comm.rank == call.peer; }
    // ---- arithmetic -------------------------------------------------------------------------------------------------

    bool is_flat() const
    {
        return comm.nodes.size() == 1 || comm.nodes.size() == static_cast<size_t>(comm.size);
    }
    int64_t partial_unit() const
    {
        const bool is_half = call.dtype == YOKE_F16 || call.dtype == YOKE_BF16;
        const bool is_sum = call.reduction != YOKE_REDUCE_MIN && call.reduction != YOKE_REDUCE_MAX;
        return is_half && is_sum ? 4 : unit;
    }
    void combine(const std::vector<const void *> &inputs, bool partial_in, bool partial_out,
                 int64_t count, void *to) const
    {
        Combination how = {};
        how.dtype = call.dtype;
        how.reduction = call.reduction;
        how.partial_in = partial_in;
        how.partial_out = partial_out;
        how.input_count = static_cast<int32_t>(inputs.size());
        how.inputs = inputs.data();
        how.out = to;
        how.count = count;
        how.divisor = call.reduction == YOKE_REDUCE_AVG && !partial_out ? comm.size : 1;
        comm.combine(how);
    }
    // Combines all ranks' elements, stored rank after rank: first the ranks of each node, then the nodes.
    void combine_all(const char *from, int64_t count, char *to) const
    {
        std::vector<const void *> inputs, partials;
        const int64_t bytes = count * partial_unit();
        char *room = comm.buffers.partials.reserve(
            is_flat() ? 0 : comm.nodes.size() * static_cast<size_t>(bytes));
        for (const std::vector<int> &node : comm.nodes) {
            for (int rank : node) inputs.push_back(from + rank * count * unit);
            if (is_flat()) continue;
            combine(inputs, false, true, count, room);
            partials.push_back(room);
            room += bytes;
            inputs.clear();
        }
        if (is_flat())
            combine(inputs, false, false, count, to);
        else
            combine(partials, true, false, count, to);
    }

    // Cuts `count` elements of `bytes_each` bytes into slices for `parts` ranks; this rank has number `me`. Valid
    // until forget_slices.
    const Slices &cut(int64_t count, size_t parts, size_t me, int64_t bytes_each) const;
    void forget_slices() const { comm.buffers.slices.clear(); }
};

// Reduces elements [at, at + count) of a large tensor for all ranks, over several nodes of equally many ranks. Each
// node combines its own elements first, so a node sends a single tensor to the other nodes.
yoke_status all_reduce_nodes(const Reduction &r, int64_t at, int64_t count);

}  // namespace yoke::mpi
