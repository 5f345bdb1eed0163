// The calls that combine elements.
//
// A small tensor goes from each rank to each other one, and every rank adds all of them up by itself: one exchange. A
// large one is cut into slices, one for each rank of a node: it gets that slice from all of its node, combines it in
// the order of ranks, and where there are several nodes combines it with its like on the other ones, in the order of
// nodes. What is finished goes back the same way, chunk by chunk as it becomes ready. Either way the additions are the
// same.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

namespace {

// What goes to every rank whole, all of it together.
constexpr uint64_t kSmallBytes = 32 << 10;
// How many chunks a rank sends to be combined before it sends a result: both ways then stay full.
constexpr int64_t kAhead = 2;
// Partial results of one round, a rank.
constexpr uint64_t kRoundBytes = 2 << 20;

// A run of elements that one rank of a team combines.
struct Piece {
    const char *in;  // this rank's elements of it
    char *out;       // where its result lands here, or null: nowhere
    int64_t count;
};

struct Reduction {
    Comm &comm;
    Flow &flow;
    const yoke_collective &call;
    int64_t unit = static_cast<int64_t>(dtype_bytes(call.dtype));
    const char *in = static_cast<const char *>(call.in);
    char *out = static_cast<char *>(call.out);
    int rank = comm.rank;
    bool greeted = false;  // headers have been exchanged

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
    void greet_all() const
    {
        if (greeted) return;
        for (int i = 1; i < comm.size; ++i) {
            flow.send_header((rank + i) % comm.size);
            flow.expect_header((rank + i) % comm.size);
        }
    }
};

// ---- slices ---------------------------------------------------------------------------------------------------------

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

// In round k the chunks k of each one's piece go to be combined, and then the results of some rounds ago. All links
// have that order, so none waits for what stands behind it.
void Stage::add_steps(size_t other, int64_t k)
{
    const Piece &theirs = pieces[other], &mine = pieces[me()];
    const int peer = team[other];
    if (k < chunks(theirs))
        r.flow.send(peer, theirs.in + k * chunk * in_unit,
                    static_cast<uint64_t>(size(theirs, k) * in_unit));
    if (k < chunks(mine)) r.flow.combine(peer, static_cast<uint64_t>(size(mine, k) * in_unit));
    const int64_t done = k - kAhead;
    if (done < 0) return;
    if (done < chunks(mine) && gets_mine[other])
        r.flow.send(peer, mine.out + done * chunk * out_unit,
                    static_cast<uint64_t>(size(mine, done) * out_unit), r.flow.combined(),
                    static_cast<uint64_t>(done + 1));
    if (done < chunks(theirs) && theirs.out)
        r.flow.receive(peer, theirs.out + done * chunk * out_unit,
                       static_cast<uint64_t>(size(theirs, done) * out_unit));
}

yoke_status Stage::run()
{
    const Piece &mine = pieces[me()];
    int64_t rounds = 0;
    for (const Piece &piece : pieces) rounds = std::max(rounds, chunks(piece));
    for (int64_t k = 0; k < chunks(mine); ++k)
        r.flow.add_chunk(
            {mine.in + k * chunk * in_unit, mine.out + k * chunk * out_unit, size(mine, k)});
    for (size_t i = 1; i < team.size(); ++i) {
        const size_t other = (me() + i) % team.size();
        for (int64_t k = 0; k < rounds + kAhead; ++k) add_steps(other, k);
    }
    r.flow.combine_from(team, how);
    return r.flow.run();
}

// ---- small tensors --------------------------------------------------------------------------------------------------

// Adds up what all ranks have sent, node by node. Rank i's elements stand at `from` + i * count, this one's at `own`.
void combine_all(const Reduction &r, const char *from, const char *own, int64_t count, char *to)
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

// To everyone, or to the root alone; of reduce_scatter to each its part.
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
        if (!has_root || peer == r.call.peer) {
            r.flow.send_header(peer);
            r.flow.send(peer, r.in + (scatters ? peer * count * r.unit : 0), bytes);
        }
        if (!takes) continue;
        r.flow.expect_header(peer);
        r.flow.receive(peer, from + peer * count * r.unit, bytes);
    }
    if (yoke_status status = r.flow.run()) return status;
    if (takes && count)
        combine_all(r, from, r.in + (scatters ? r.rank * count * r.unit : 0), count, r.out);
    return YOKE_OK;
}

// ---- large tensors, one level ---------------------------------------------------------------------------------------

yoke_status all_reduce_flat(Reduction &r)
{
    Stage stage{r, r.everyone(), r.how(false, false), r.unit, r.unit, {}, {}};
    const Cut cut(r.call.count, stage.team.size());
    const bool has_root = r.call.op == YOKE_COMM_REDUCE, is_root = r.rank == r.call.peer;
    char *kept = r.out;  // what another rank's root gets passes through here
    if (has_root && !is_root)
        kept = r.comm.partials.reserve(static_cast<uint64_t>(cut.size(stage.me()) * r.unit));
    for (size_t i = 0; i < stage.team.size(); ++i) {
        const int64_t begin = cut.begin(i) * r.unit;
        char *out = !has_root || is_root ? r.out + begin : i == stage.me() ? kept : nullptr;
        stage.pieces.push_back({r.in + begin, out, cut.size(i)});
        stage.gets_mine.push_back(!has_root || stage.team[i] == r.call.peer);
    }
    r.greet_all();
    return stage.run();
}

yoke_status reduce_scatter_flat(Reduction &r)
{
    Stage stage{r, r.everyone(), r.how(false, false), r.unit, r.unit, {}, {}};
    const int64_t bytes = r.call.count * r.unit;
    const char *own = r.in + r.rank * bytes;
    // Where the result would take the place of what has not gone yet, it waits aside.
    const bool lies_within =
        r.out != own && r.out < r.in + r.comm.size * bytes && r.out + bytes > r.in;
    char *out = lies_within ? r.comm.partials.reserve(static_cast<uint64_t>(bytes)) : r.out;
    for (int peer : stage.team) {
        stage.pieces.push_back({r.in + peer * bytes, peer == r.rank ? out : nullptr, r.call.count});
        stage.gets_mine.push_back(false);
    }
    r.greet_all();
    const yoke_status status = stage.run();
    if (!status && lies_within) memcpy(r.out, out, static_cast<size_t>(bytes));
    return status;
}

// ---- large tensors, several nodes with several ranks each -----------------------------------------------------------

// The slices of one round of all_reduce and reduce: as many as the node with the fewest ranks has. The first ranks of
// every node have one each.
struct Round {
    Reduction &r;
    int64_t begin, count;  // elements of the tensor
    Cut cut{count, r.comm.layout.fewest()};
    size_t node = static_cast<size_t>(r.comm.layout.node_of[r.rank]);
    size_t index = static_cast<size_t>(r.comm.layout.index_of[r.rank]);
    size_t width = r.comm.layout.fewest();
    bool has_root = r.call.op == YOKE_COMM_REDUCE;

    bool has_slice() const { return index < width; }
    bool has_output() const { return !has_root || r.rank == r.call.peer; }
    bool is_roots_node() const
    {
        return !has_root || static_cast<size_t>(r.comm.layout.node_of[r.call.peer]) == node;
    }
    // Where finished elements of slice i lie on this rank.
    char *finished(size_t i, char *aside) const
    {
        return has_output() ? r.out + (begin + cut.begin(i)) * r.unit : aside;
    }

    yoke_status run();

private:
    yoke_status inside(char *partial);
    yoke_status across(const char *partial, char *aside);
    yoke_status back(char *aside);
};

yoke_status Round::inside(char *partial)
{
    Stage stage{r, r.home(), r.how(false, true), r.unit, r.partial_unit(), {}, {}};
    for (size_t i = 0; i < stage.team.size(); ++i) {
        const int64_t elements = i < width ? cut.size(i) : 0;
        const char *own = r.in + (begin + (i < width ? cut.begin(i) : 0)) * r.unit;
        stage.pieces.push_back({own, i == index ? partial : nullptr, elements});
        stage.gets_mine.push_back(false);
    }
    return stage.run();
}

yoke_status Round::across(const char *partial, char *aside)
{
    const auto &nodes = r.comm.layout.nodes;
    Stage stage{r, {}, r.how(true, false), r.partial_unit(), r.unit, {}, {}};
    const Cut sub(cut.size(index), nodes.size());
    for (size_t i = 0; i < nodes.size(); ++i) {
        const bool gets = !has_root || static_cast<size_t>(r.comm.layout.node_of[r.call.peer]) == i;
        const bool has_place = is_roots_node() || i == node;
        char *out = has_place ? finished(index, aside) + sub.begin(i) * r.unit : nullptr;
        stage.team.push_back(nodes[i][index]);
        stage.pieces.push_back({partial + sub.begin(i) * r.partial_unit(), out, sub.size(i)});
        stage.gets_mine.push_back(gets);
    }
    return stage.run();
}

yoke_status Round::back(char *aside)
{
    const auto &ranks = r.home();
    for (size_t i = 0; i < ranks.size(); ++i) {
        const int peer = ranks[i];
        if (peer == r.rank) continue;
        if (has_slice() && (!has_root || peer == r.call.peer))
            r.flow.send(peer, finished(index, aside),
                        static_cast<uint64_t>(cut.size(index) * r.unit));
        if (i < width && has_output())
            r.flow.receive(peer, finished(i, nullptr), static_cast<uint64_t>(cut.size(i) * r.unit));
    }
    return r.flow.run();
}

yoke_status Round::run()
{
    const int64_t largest = cut.size(0);
    char *partial = r.comm.partials.reserve(
        static_cast<uint64_t>(padded(largest * r.partial_unit()) + largest * r.unit));
    char *aside = partial + padded(static_cast<uint64_t>(largest * r.partial_unit()));
    if (yoke_status status = inside(partial)) return status;
    r.flow.next();
    if (has_slice())
        if (yoke_status status = across(partial, aside)) return status;
    r.flow.next();
    if (is_roots_node())
        if (yoke_status status = back(aside)) return status;
    r.flow.next();
    return YOKE_OK;
}

yoke_status all_reduce_nodes(Reduction &r)
{
    r.greet_all();
    const int64_t width = static_cast<int64_t>(r.comm.layout.fewest());
    const int64_t most = width * static_cast<int64_t>(kRoundBytes) / r.partial_unit();
    for (int64_t begin = 0; begin < r.call.count; begin += most) {
        Round round{r, begin, std::min(most, r.call.count - begin)};
        if (yoke_status status = round.run()) return status;
    }
    return YOKE_OK;
}

}  // namespace

yoke_status run_reduction(Comm &comm, const yoke_collective &call)
{
    bool done = false;
    comm.flow->begin(call);
    Reduction r{comm, *comm.flow, call};
    const bool scatters = call.op == YOKE_COMM_REDUCE_SCATTER;
    const auto bytes = static_cast<uint64_t>(call.count * r.unit);
    if (comm.size == 1 || bytes * static_cast<uint64_t>(comm.size) <= kSmallBytes)
        return reduce_small(r);
    if (call.op == YOKE_COMM_ALL_REDUCE)
        if (yoke_status status = all_reduce_in_place(comm, call, &r.greeted, &done); status || done)
            return status;
    if (!scatters) return r.is_flat() ? all_reduce_flat(r) : all_reduce_nodes(r);
    return r.is_flat() ? reduce_scatter_flat(r) : reduce_small(r);
}

}  // namespace yoke::cpu::comm
