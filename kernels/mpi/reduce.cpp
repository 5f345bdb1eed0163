// Calls that combine elements. MPI moves the elements, and Yoke adds them. An MPI_Op would combine in any order that
// the library prefers, and round a 16-bit float at each step. The contract demands a fixed order and a single
// rounding.
//
// A small tensor goes whole to all ranks, and every rank adds all tensors. A large tensor is cut into slices, a slice
// for each rank. A rank gets its slice from all ranks and combines the slice; then the results are gathered.
#include <algorithm>

#include "kernels/mpi/reduction.h"

namespace yoke::mpi {

namespace {

// Largest total size of a call if tensors go to every rank whole.
constexpr int64_t kSmallBytes = 32 << 10;
// Least bytes of a round on a rank: of all ranks' elements together, and of each rank.
constexpr int64_t kRoundBytes = 8 << 20, kSliceBytes = 64 << 10;

}  // namespace

const Slices &Reduction::cut(int64_t count, size_t parts, size_t me, int64_t bytes_each) const
{
    Slices &made = comm.buffers.slices.emplace_back();
    const auto ranks = static_cast<int64_t>(parts), self = static_cast<int64_t>(me);
    const int64_t each = (count + ranks - 1) / ranks;
    const auto begin = [&](int64_t rank) { return std::min(count, rank * each); };
    made.count_of_mine = begin(self + 1) - begin(self);
    for (int64_t rank = 0; rank < ranks; ++rank) {
        made.bytes.push_back(static_cast<int>((begin(rank + 1) - begin(rank)) * bytes_each));
        made.begins.push_back(static_cast<int>(begin(rank) * bytes_each));
        made.mine.push_back(static_cast<int>(made.count_of_mine * bytes_each));
        made.places.push_back(static_cast<int>(rank * made.count_of_mine * bytes_each));
    }
    return made;
}

namespace {

// Reduction in rounds: they limit the memory for other ranks' elements.
struct Rounds : Reduction {
    // Returns the elements of a round, a multiple of the number of ranks.
    int64_t round_count() const
    {
        const int64_t bytes =
            std::min(std::max(kRoundBytes, kSliceBytes * comm.size), comm.most_bytes);
        return std::max<int64_t>(bytes / unit / comm.size, 1) * comm.size;
    }

    // Reduces elements [at, at + count) of a small tensor.
    yoke_status small(int64_t at, int64_t count)
    {
        const auto bytes = static_cast<int>(count * unit);
        char *all = comm.buffers.staging.reserve(static_cast<size_t>(bytes) *
                                                 static_cast<size_t>(comm.size));
        flow.clear();
        if (call.op == YOKE_COMM_REDUCE)
            flow.note(MPI_Igather(in + at * unit, bytes, MPI_BYTE, all, bytes, MPI_BYTE, call.peer,
                                  comm.ranks, flow.add()),
                      "MPI_Igather");
        else
            flow.note(MPI_Iallgather(in + at * unit, bytes, MPI_BYTE, all, bytes, MPI_BYTE,
                                     comm.ranks, flow.add()),
                      "MPI_Iallgather");
        if (yoke_status status = flow.wait()) return status;
        if (is_root()) combine_all(all, count, out + at * unit);
        return YOKE_OK;
    }

    yoke_status large(int64_t at, int64_t count)
    {
        const auto me = static_cast<size_t>(comm.rank);
        forget_slices();
        const Slices &cut = this->cut(count, static_cast<size_t>(comm.size), me, unit);
        const auto bytes = static_cast<size_t>(cut.mine[0]);
        char *all = comm.buffers.staging.reserve(bytes * static_cast<size_t>(comm.size));
        flow.clear();
        flow.note(
            MPI_Ialltoallv(in + at * unit, cut.bytes.data(), cut.begins.data(), MPI_BYTE, all,
                           cut.mine.data(), cut.places.data(), MPI_BYTE, comm.ranks, flow.add()),
            "MPI_Ialltoallv");
        if (yoke_status status = flow.wait()) return status;
        char *to = is_root() ? out + at * unit : nullptr;
        char *own = to ? to + cut.begins[me] : comm.buffers.result.reserve(bytes);
        combine_all(all, cut.count_of_mine, own);
        flow.clear();
        collect(cut, own, to);
        return flow.wait();
    }

    // Starts to send the finished slices to all ranks, or to the root.
    void collect(const Slices &cut, const char *own, char *to)
    {
        const auto me = static_cast<size_t>(comm.rank);
        if (call.op == YOKE_COMM_REDUCE)
            flow.note(MPI_Igatherv(is_root() ? MPI_IN_PLACE : own, cut.bytes[me], MPI_BYTE, to,
                                   cut.bytes.data(), cut.begins.data(), MPI_BYTE, call.peer,
                                   comm.ranks, flow.add()),
                      "MPI_Igatherv");
        else
            flow.note(MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, to, cut.bytes.data(),
                                      cut.begins.data(), MPI_BYTE, comm.ranks, flow.add()),
                      "MPI_Iallgatherv");
    }

    // Reduces elements [at, at + count) of each rank's part. If the result overwrites elements, these were already
    // sent.
    yoke_status scatter(int64_t at, int64_t count)
    {
        const Parts parts(flow, count * unit, call.count * unit);
        const auto bytes = static_cast<int>(count * unit);
        char *all = comm.buffers.staging.reserve(static_cast<size_t>(bytes) *
                                                 static_cast<size_t>(comm.size));
        flow.clear();
        flow.note(MPI_Ialltoall(in + at * unit, parts.count(), parts.type(), all, bytes, MPI_BYTE,
                                comm.ranks, flow.add()),
                  "MPI_Ialltoall");
        if (yoke_status status = flow.wait()) return status;
        combine_all(all, count, out + at * unit);
        return YOKE_OK;
    }

    yoke_status run()
    {
        const bool scatters = call.op == YOKE_COMM_REDUCE_SCATTER;
        const bool is_small = call.count * unit * comm.size <= kSmallBytes;
        const int64_t most = scatters ? round_count() / comm.size : round_count();
        yoke_status status = YOKE_OK;
        for (int64_t at = 0, count; at < call.count && !status; at += count) {
            count = std::min(call.count - at, most);
            if (scatters)
                status = scatter(at, count);
            else if (is_small)
                status = small(at, count);
            else if (call.op == YOKE_COMM_ALL_REDUCE && comm.across != MPI_COMM_NULL)
                status = all_reduce_nodes(*this, at, count);
            else
                status = large(at, count);
        }
        return status;
    }
};

}  // namespace

yoke_status run_reduction(Comm &comm, const yoke_collective &call)
{
    Flow flow(comm, call);
    if (yoke_status status = greet(comm, flow, call)) return status;
    return Rounds{{comm, flow, call}}.run();
}

}  // namespace yoke::mpi
