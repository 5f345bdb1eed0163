// Calls that move elements without combining them.
#include <algorithm>
#include <cstring>

#include "kernels/mpi/parts.h"

namespace yoke::mpi {

namespace {

// Call, and the bytes [at, at + run) of each part, moved by a single MPI operation.
struct Exchange {
    Comm &comm;
    Flow &flow;
    const yoke_collective &call;
    int64_t part = call.count * kernels::dtype_bytes(call.dtype);
    const char *in = static_cast<const char *>(call.in);
    char *out = static_cast<char *>(call.out);
    int64_t at = 0, run = 0;

    bool is_root() const { return comm.rank == call.peer; }
    char *own_of_out() const { return out + comm.rank * part; }
    // Moves this rank's part to its place among all parts, where MPI reads it.
    void place_own() const
    {
        if (in != own_of_out()) memmove(own_of_out(), in, static_cast<size_t>(part));
    }

    void broadcast()
    {
        flow.note(MPI_Ibcast(out + at, static_cast<int>(run), MPI_BYTE, call.peer, comm.ranks,
                             flow.add()),
                  "MPI_Ibcast");
    }

    void all_gather()
    {
        const Parts parts(flow, run, part);
        flow.note(MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out + at, parts.count(),
                                 parts.type(), comm.ranks, flow.add()),
                  "MPI_Iallgather");
    }

    void gather()
    {
        const Parts parts(flow, run, part);
        const void *from = is_root() ? MPI_IN_PLACE : in + at;
        flow.note(MPI_Igather(from, static_cast<int>(run), MPI_BYTE, is_root() ? out + at : nullptr,
                              parts.count(), parts.type(), call.peer, comm.ranks, flow.add()),
                  "MPI_Igather");
    }

    void scatter()
    {
        const Parts parts(flow, run, part);
        void *to = is_root() ? MPI_IN_PLACE : out + at;
        flow.note(MPI_Iscatter(is_root() ? in + at : nullptr, parts.count(), parts.type(), to,
                               static_cast<int>(run), MPI_BYTE, call.peer, comm.ranks, flow.add()),
                  "MPI_Iscatter");
    }

    void all_to_all()
    {
        const Parts parts(flow, run, part);
        const void *from = in == out ? MPI_IN_PLACE : in + at;
        flow.note(MPI_Ialltoall(from, parts.count(), parts.type(), out + at, parts.count(),
                                parts.type(), comm.ranks, flow.add()),
                  "MPI_Ialltoall");
    }

    void start()
    {
        switch (call.op) {
            case YOKE_COMM_BROADCAST:
                return broadcast();
            case YOKE_COMM_ALL_GATHER:
                return all_gather();
            case YOKE_COMM_GATHER:
                return gather();
            case YOKE_COMM_SCATTER:
                return scatter();
            default:
                return all_to_all();
        }
    }

    yoke_status pieces()
    {
        for (at = 0; at < part; at += run) {
            run = std::min(part - at, comm.most_bytes);
            flow.clear();
            start();
            if (yoke_status status = flow.wait()) return status;
        }
        return YOKE_OK;
    }
};

}  // namespace

yoke_status run_exchange(Comm &comm, const yoke_collective &call)
{
    Flow flow(comm, call);
    if (yoke_status status = greet(comm, flow, call)) return status;
    if (call.op == YOKE_COMM_BARRIER || call.count == 0) return YOKE_OK;  // all have come
    Exchange exchange{comm, flow, call};
    if (call.op == YOKE_COMM_ALL_GATHER || (call.op == YOKE_COMM_GATHER && exchange.is_root()))
        exchange.place_own();
    if (yoke_status status = exchange.pieces()) return status;
    if (call.op == YOKE_COMM_SCATTER && exchange.is_root())
        memmove(exchange.out, exchange.in + comm.rank * exchange.part,
                static_cast<size_t>(exchange.part));
    return YOKE_OK;
}

}  // namespace yoke::mpi
