// What ends a call before it is done, and whom it blames.
#include <algorithm>

#include "kernels/cpu/comm/flow.h"

namespace yoke::cpu::comm {

static const char *call_name(int32_t op)
{
    static const char *const kNames[] = {"barrier",    "all_reduce", "reduce",  "broadcast",
                                         "all_gather", "gather",     "scatter", "reduce_scatter",
                                         "all_to_all", "send",       "recv"};
    return op >= 0 && op < YOKE_COMM_OP_COUNT ? kNames[op] : "no known op";
}

// The lowest of the ranks that have not begun the call, or do not go on with a message to or from this one. Amid the
// elements of a collective the others wait for one another, too, and who is the cause is not seen from here: -1.
int Flow::late_rank()
{
    int not_begun = comm_.size, open = comm_.size;
    for (int peer : used_) {
        const Lane &one = lane(peer);
        if (!one.is_open()) continue;
        open = std::min(open, peer);
        if (one.awaits() && one.in[one.in_at].take == Take::kHeader)
            not_begun = std::min(not_begun, peer);
    }
    if (not_begun < comm_.size) return not_begun;
    return header().signature.op == YOKE_COMM_SEND || comm_.size == 2 ? open : -1;
}

yoke_status Flow::check()
{
    if (comm_.aborted.load()) return fail_with(YOKE_COMM_FAULT_ABORTED, -1);
    if (deadline_.passed() && is_open()) return fail_with(YOKE_COMM_FAULT_LATE, late_rank());
    return YOKE_OK;
}

// Called after a look that found nothing more of them to read.
yoke_status Flow::blame_ended()
{
    int ended = comm_.size;
    for (int peer : used_)
        if (lane(peer).is_open() && lane(peer).link->is_closed()) ended = std::min(ended, peer);
    return ended < comm_.size ? fail_with(YOKE_COMM_FAULT_DIED, ended) : YOKE_OK;
}

yoke_status Flow::fail_with(int32_t kind, int peer)
{
    comm_.has_failed = true;
    if (fault_) {
        fault_->kind = kind;
        fault_->rank = peer;
        fault_->theirs = {};
    }
    const yoke_comm_signature &mine = header().signature;
    const char *name = call_name(mine.op);
    const auto sequence = static_cast<unsigned long long>(mine.sequence);
    switch (kind) {
        case YOKE_COMM_FAULT_ABORTED:
            return fail(YOKE_E_CANCELLED, "cpu: %s, call %llu, was aborted", name, sequence);
        case YOKE_COMM_FAULT_LATE:
            if (peer < 0)
                return fail(YOKE_E_TIMEOUT,
                            "cpu: %s, call %llu: all ranks came, and were not done within %.4g s",
                            name, sequence, timeout_s_);
            return fail(YOKE_E_TIMEOUT, "cpu: %s, call %llu: rank %d did not come within %.4g s",
                        name, sequence, peer, timeout_s_);
        case YOKE_COMM_FAULT_DIED:
            return fail(YOKE_E_COMM, "cpu: %s, call %llu: the connection to rank %d has ended",
                        name, sequence, peer);
        default:
            return fail_mismatch(peer);
    }
}

// The header that was expected next of that peer, beside the one that came.
yoke_status Flow::fail_mismatch(int peer)
{
    const Lane &from = lane(peer);
    const yoke_comm_signature &theirs = from.header.signature;
    const yoke_comm_signature &mine =
        reinterpret_cast<const Header *>(from.in[from.in_at].data)->signature;
    const auto number = [](uint64_t x) { return static_cast<unsigned long long>(x); };
    const auto elements = [](int64_t x) { return static_cast<long long>(x); };
    if (from.header.mark != kHeaderMark) {
        if (fault_) fault_->kind = YOKE_COMM_FAULT_NONE;
        return fail(YOKE_E_COMM, "cpu: %s, call %llu: what rank %d sent is no header",
                    call_name(mine.op), number(mine.sequence), peer);
    }
    if (fault_) fault_->theirs = theirs;
    return fail(
        YOKE_E_COMM,
        "cpu: this rank called %s, call %llu of group %llu: %lld of dtype %d, reduction %d, root %d; rank %d called %s, call %llu of group %llu: %lld of dtype %d, reduction %d, root %d",
        call_name(mine.op), number(mine.sequence), number(mine.group), elements(mine.count),
        mine.dtype, mine.reduction, mine.root, peer, call_name(theirs.op), number(theirs.sequence),
        number(theirs.group), elements(theirs.count), theirs.dtype, theirs.reduction, theirs.root);
}

}  // namespace yoke::cpu::comm
