// One call that combines elements, and the stage of which all its large cases are made.
#pragma once

#include <algorithm>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

// How many chunks a rank sends to be combined before it sends a result: both ways then stay full.
constexpr int64_t kAhead = 2;
// Partial results of one round, a rank.
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
    // Bytes of an element that is on its way from a node to another.
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
    // All ranks in the order in which they are combined.
    std::vector<int> everyone() const
    {
        std::vector<int> all;
        for (const auto &node : comm.layout.nodes) all.insert(all.end(), node.begin(), node.end());
        return all;
    }
};

// Part i of `parts` of so many elements; ends lie at multiples of 64 elements, which every dtype's vectors like.
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

// A run of elements that one rank of a team combines.
struct Piece {
    const char *in;  // this rank's elements of it
    char *out;       // where its result lands here, or null: nowhere
    int64_t count;
};

// One stage of a reduction among the ranks of a team, of which this is one.
struct Stage {
    Reduction &r;
    std::vector<int> team;
    Combination how;
    int64_t in_unit, out_unit;
    std::vector<Piece> pieces;    // by place in the team: what that rank combines
    std::vector<bool> gets_mine;  // by place: whether it gets this rank's result
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

// A tensor that goes from everyone to everyone whole; of reduce_scatter each one's part.
yoke_status reduce_small(Reduction &r);
// A tensor over several nodes of which some have several ranks.
yoke_status reduce_nodes(Reduction &r);
yoke_status reduce_scatter_nodes(Reduction &r);

}  // namespace yoke::cpu::comm
