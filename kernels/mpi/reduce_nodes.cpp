// all_reduce over several nodes of equally many ranks: in a node each rank combines a slice, then with its like on the
// other nodes; what is finished goes back the same way. The additions are those of every other way.
#include <algorithm>

#include "kernels/mpi/reduction.h"

namespace yoke::mpi {

namespace {

struct NodeRound {
    const Reduction &r;
    char *out;  // result of the round
    Comm &comm = r.comm;
    int64_t unit = r.partial_unit();

    // Exchanges slices in the team: receives all ranks' elements of this rank's slice, and combines them at `to`.
    yoke_status combine(const void *from, const Slices &cut, MPI_Comm team, bool is_last, void *to)
    {
        const size_t ranks = cut.bytes.size();
        char *all = comm.buffers.staging.reserve(static_cast<size_t>(cut.mine[0]) * ranks);
        r.flow.clear();
        r.flow.note(
            MPI_Ialltoallv(from, cut.bytes.data(), cut.begins.data(), MPI_BYTE, all,
                           cut.mine.data(), cut.places.data(), MPI_BYTE, team, r.flow.add()),
            "MPI_Ialltoallv");
        if (yoke_status status = r.flow.wait()) return status;
        std::vector<const void *> inputs;
        for (size_t i = 0; i < ranks; ++i) inputs.push_back(all + cut.places[i]);
        r.combine(inputs, is_last, !is_last, cut.count_of_mine, to);
        return YOKE_OK;
    }

    yoke_status gather(char *to, const Slices &cut, MPI_Comm team)
    {
        r.flow.clear();
        r.flow.note(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, cut.bytes.data(),
                                    cut.begins.data(), MPI_BYTE, team, r.flow.add()),
                    "MPI_Iallgatherv");
        return r.flow.wait();
    }

    yoke_status run(const char *in, int64_t count)
    {
        const size_t nodes = comm.nodes.size(), node = comm.my_node;
        r.forget_slices();
        const Slices &mine = r.cut(count, comm.nodes[0].size(), comm.my_place, r.unit);
        const Slices &part = r.cut(mine.count_of_mine, nodes, node, unit);
        const Slices &done = r.cut(mine.count_of_mine, nodes, node, r.unit);
        char *sums = comm.buffers.partials.reserve(static_cast<size_t>(mine.count_of_mine * unit));
        char *slice = out + mine.begins[comm.my_place];
        if (yoke_status status = combine(in, mine, comm.within, false, sums)) return status;
        if (yoke_status status = combine(sums, part, comm.across, true, slice + done.begins[node]))
            return status;
        if (yoke_status status = gather(slice, done, comm.across)) return status;
        return gather(out, mine, comm.within);
    }
};

}  // namespace

yoke_status all_reduce_nodes(const Reduction &r, int64_t at, int64_t count)
{
    return NodeRound{r, r.out + at * r.unit}.run(r.in + at * r.unit, count);
}

}  // namespace yoke::mpi
