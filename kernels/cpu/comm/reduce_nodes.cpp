// Large tensors over several nodes: combined inside each node, then across, then handed back inside.
#include "kernels/cpu/comm/reduction.h"

namespace yoke::cpu::comm {

namespace {

// Slices of a round of all_reduce and reduce: as many as the smallest node has ranks. The first ranks of every node
// have a slice each.
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
    // Returns where finished elements of slice i lie on this rank: in the output, or in `aside` on a rank without
    // output.
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

}  // namespace

yoke_status reduce_nodes(Reduction &r)
{
    const int64_t width = static_cast<int64_t>(r.comm.layout.fewest());
    const int64_t most = width * static_cast<int64_t>(kRoundBytes) / r.partial_unit();
    for (int64_t begin = 0; begin < r.call.count; begin += most) {
        Round round{r, begin, std::min(most, r.call.count - begin)};
        if (yoke_status status = round.run()) return status;
    }
    return YOKE_OK;
}

// ---- reduce_scatter -------------------------------------------------------------------------------------------------

namespace {

// Elements [begin, begin + count) of every rank's part. The part of a rank of another node is combined here by the
// rank with the same index in its node; if this node has fewer ranks, indices wrap.
struct ScatterRound {
    Reduction &r;
    int64_t begin, count;
    uint64_t bytes = static_cast<uint64_t>(count * r.partial_unit());  // size of a partial result
    int node = r.comm.layout.node_of[r.rank];
    char *next = nullptr;       // room for the next partial result
    const char *own = nullptr;  // partial result of this rank's part
    struct Slot {
        int rank;
        const char *data;
    };
    std::vector<Slot> slots = {};  // partial results for ranks of other nodes

    yoke_status run();

private:
    int combiner(int at, int part) const;
    yoke_status inside(const std::vector<int> &ranks, size_t first);
    yoke_status across();
};

int ScatterRound::combiner(int at, int part) const
{
    const auto &ranks = r.comm.layout.nodes[at];
    return ranks[static_cast<size_t>(r.comm.layout.index_of[part]) % ranks.size()];
}

// Combines the parts of `ranks` from place `first` on, a part for each rank of this node.
yoke_status ScatterRound::inside(const std::vector<int> &ranks, size_t first)
{
    Stage stage{r, r.home(), r.how(false, true), r.unit, r.partial_unit(), {}, {}};
    for (size_t i = 0; i < stage.team.size(); ++i) {
        const bool has_part = first + i < ranks.size();
        const int part = has_part ? ranks[first + i] : 0;
        char *out = nullptr;
        if (has_part && stage.team[i] == r.rank) {
            out = next;
            next += padded(bytes);
            if (part == r.rank)
                own = out;
            else
                slots.push_back({part, out});
        }
        stage.pieces.push_back(
            {r.in + (part * r.call.count + begin) * r.unit, out, has_part ? count : 0});
        stage.gets_mine.push_back(false);
    }
    const yoke_status status = stage.run();
    r.flow.next();
    return status;
}

yoke_status ScatterRound::across()
{
    const int64_t chunk = static_cast<int64_t>(kChunkBytes) / r.partial_unit();
    std::vector<int> team;
    for (size_t at = 0; at < r.comm.layout.nodes.size(); ++at)
        team.push_back(static_cast<int>(at) == node ? r.rank
                                                    : combiner(static_cast<int>(at), r.rank));
    for (const Slot &slot : slots) r.flow.send(slot.rank, slot.data, bytes);
    for (int64_t at = 0; at < count; at += chunk) {
        const int64_t now = std::min(chunk, count - at);
        r.flow.add_chunk({own + at * r.partial_unit(), r.out + (begin + at) * r.unit, now});
        for (int peer : team)
            if (peer != r.rank) r.flow.combine(peer, static_cast<uint64_t>(now * r.partial_unit()));
    }
    r.flow.combine_from(team, r.how(true, false));
    const yoke_status status = r.flow.run();
    r.flow.next();
    return status;
}

yoke_status ScatterRound::run()
{
    const auto &nodes = r.comm.layout.nodes;
    const size_t here = nodes[node].size();
    size_t most = 0;
    for (const auto &ranks : nodes) most += (ranks.size() + here - 1) / here;
    next = r.comm.partials.reserve(most * padded(bytes));
    for (const auto &ranks : nodes)
        for (size_t first = 0; first < ranks.size(); first += here)
            if (yoke_status status = inside(ranks, first)) return status;
    return across();
}

}  // namespace

yoke_status reduce_scatter_nodes(Reduction &r)
{
    const auto shares = static_cast<int64_t>(
        (static_cast<size_t>(r.comm.size) + r.comm.layout.fewest() - 1) / r.comm.layout.fewest());
    const int64_t most =
        std::max<int64_t>(static_cast<int64_t>(kRoundBytes) / r.partial_unit() / shares, 4096);
    for (int64_t begin = 0; begin < r.call.count; begin += most) {
        ScatterRound round{r, begin, std::min(most, r.call.count - begin)};
        if (yoke_status status = round.run()) return status;
    }
    return YOKE_OK;
}

}  // namespace yoke::cpu::comm
