// Call that combines elements, and the stage from which all large cases are built.
#pragma once

#include <algorithm>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

// Chunks sent to be combined before the first result is sent: both directions stay full.
constexpr int64_t kAhead = 2;
// Bytes of a rank's partial results in a round.
constexpr uint64_t kRoundBytes = 2 << 20;

struct Reduction {
    Comm &comm;
    Flow &flow;
    const yoke_collective &call;
    int64_t unit = static_cast<int64_t>(dtype_bytes(call.dtype));
    const char *in = static_cast<const char *>(call.in);
    char *out = static_cast<char *>(call.out);
    int rank = comm.rank;

    bool is_sum() const
    {
        return call.reduction != YOKE_REDUCE_MIN && call.reduction != YOKE_REDUCE_MAX;
    }
    // Returns the bytes of an element in transit between nodes.
    int64_t partial_unit() const
    {
        return is_sum() && (call.dtype == YOKE_F16 || call.dtype == YOKE_BF16) ? 4 : unit;
    }
    Combination how(bool partial_in, bool partial_out) const
    {
        Combination one = {};
        one.dtype = call.dtype;
        one.reduction = call.reduction;
        one.partial_in = partial_in;
        one.partial_out = partial_out;
        one.divisor = call.reduction == YOKE_REDUCE_AVG && !partial_out ? comm.size : 1;
        return one;
    }
    const std::vector<int> &home() const { return comm.layout.nodes[comm.layout.node_of[rank]]; }
    bool is_flat() const { return comm.layout.nodes.size() == 1 || comm.layout.most() == 1; }
    // Returns all ranks in the order of their combination.
    std::vector<int> everyone() const
    {
        std::vector<int> all;
        for (const auto &node : comm.layout.nodes) all.insert(all.end(), node.begin(), node.end());
        return all;
    }
};

// Cut of elements into parts; ends lie at multiples of 64 elements, so vectors of every dtype are whole.
struct Cut {
    int64_t count, each;
    Cut(int64_t whole, size_t parts)
        : count(whole),
          each(((whole + static_cast<int64_t>(parts) - 1) / static_cast<int64_t>(parts) + 63) / 64 *
               64)
    {
    }
    int64_t begin(size_t i) const { return std::min(count, static_cast<int64_t>(i) * each); }
    int64_t size(size_t i) const { return begin(i + 1) - begin(i); }
};

// Run of elements combined by a single rank of a team.
struct Piece {
    const char *in;  // this rank's elements of the run
    char *out;       // place of the result here, or null
    int64_t count;
};

// Stage of a reduction among the ranks of a team. This rank is in the team.
struct Stage {
    Reduction &r;
    std::vector<int> team;
    Combination how;
    int64_t in_unit, out_unit;
    std::vector<Piece> pieces;    // by place in the team: the piece combined by this rank
    std::vector<bool> gets_mine;  // by place: whether the rank gets this rank's result
    int64_t chunk = static_cast<int64_t>(kChunkBytes) / std::max(in_unit, out_unit);

    size_t me() const
    {
        return static_cast<size_t>(std::find(team.begin(), team.end(), r.rank) - team.begin());
    }
    int64_t chunks(const Piece &piece) const { return (piece.count + chunk - 1) / chunk; }
    int64_t size(const Piece &piece, int64_t k) const
    {
        return std::min(chunk, piece.count - k * chunk);
    }

    yoke_status run();

private:
    void add_steps(size_t other, int64_t round);
};

// Reduces a small tensor: every rank sends the tensor whole to every rank, or to the root of a reduce. In
// reduce_scatter, each rank sends the receiver's part.
yoke_status reduce_small(Reduction &r);
// Reduces a large tensor over several nodes, if a node has several ranks. reduce_scatter_nodes does this for
// reduce_scatter.
yoke_status reduce_nodes(Reduction &r);
yoke_status reduce_scatter_nodes(Reduction &r);

}  // namespace yoke::cpu::comm
