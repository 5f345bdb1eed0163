#include "kernels/cpu/comm/reduction.h"

namespace yoke::cpu::comm {

// Adds the steps of round k: first chunk k of each rank's piece, then the results of an earlier round. All links use
// this order, so no step waits for a later step.
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

}  // namespace yoke::cpu::comm
