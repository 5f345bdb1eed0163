// Exchange of signatures before the data of a call.
//
// Up to sixteen ranks send their signature directly to each other. More ranks pass signatures on in rounds, log16 of
// their number. In a round, each rank sends all signatures known so far to fifteen ranks, at distances that are
// multiples of the number of known signatures. In the end every rank has all signatures and compares them itself. If
// a rank waits in a round, it can name the awaited rank.
#include <algorithm>
#include <cstring>

#include "kernels/mpi/flow.h"

namespace yoke::mpi {

namespace {

constexpr int64_t kRadix = 16;

bool is_same(const Signature &a, const Signature &b)
{
    static_assert(sizeof(Signature) == 48, "no byte between its members is left to chance");
    return memcmp(&a, &b, sizeof a) == 0;
}

struct Greeting {
    Comm &comm;
    Flow &flow;

    int at(int64_t distance) const
    {
        return static_cast<int>((comm.rank + distance + comm.size) % comm.size);
    }

    // Runs a round. Before the round, each rank knows the signatures of `known` ranks, starting with its own; after
    // the round, of up to sixteen times as many.
    yoke_status round(int64_t known)
    {
        flow.clear();
        for (int64_t far = known; far < comm.size && far < known * kRadix; far += known) {
            const auto bytes =
                static_cast<int64_t>(sizeof(Signature)) * std::min(known, comm.size - far);
            flow.receive(&comm.buffers.board[static_cast<size_t>(far)], bytes, at(far), kHeaderTag);
            flow.send(comm.buffers.board.data(), bytes, at(-far), kHeaderTag, -1);
        }
        if (yoke_status status = flow.wait()) return status;
        size_t next = 0;
        for (int64_t far = known; far < comm.size && far < known * kRadix; far += known, next += 2)
            if (yoke_status status = check(far, known, flow.operations()[next].bytes))
                return status;
        return YOKE_OK;
    }

    // Checks the signatures received from a rank. If this rank sends a message instead of the call, it sends only a
    // single signature; then returns a mismatch.
    yoke_status check(int64_t far, int64_t known, int bytes)
    {
        const Signature &theirs = comm.buffers.board[static_cast<size_t>(far)];
        const int64_t expected = std::min(known, comm.size - far);
        if (theirs.op != YOKE_COMM_SEND &&
            bytes == expected * static_cast<int64_t>(sizeof(Signature)))
            return YOKE_OK;
        return flow.fail_mismatch(at(far), comm.buffers.board[0], theirs);
    }
};

}  // namespace

yoke_status greet(Comm &comm, Flow &flow, const yoke_collective &call)
{
    comm.buffers.board.resize(static_cast<size_t>(comm.size));
    comm.buffers.board[0] = *call.signature;
    Greeting greeting{comm, flow};
    for (int64_t known = 1; known < comm.size; known *= kRadix)
        if (yoke_status status = greeting.round(known)) return status;
    flow.clear();
    for (int rank = 0; rank < comm.size; ++rank) {
        const Signature &theirs =
            comm.buffers.board[static_cast<size_t>((rank - comm.rank + comm.size) % comm.size)];
        if (!is_same(theirs, comm.buffers.board[0]))
            return flow.fail_mismatch(rank, comm.buffers.board[0], theirs);
    }
    return YOKE_OK;
}

}  // namespace yoke::mpi
