#include "kernels/mpi/flow.h"

#include <sched.h>
#include <time.h>

#include <algorithm>

#include "kernels/mpi/job.h"

namespace yoke::mpi {

const char *call_name(int32_t op)
{
    static const char *const kNames[] = {"barrier",    "all_reduce", "reduce",  "broadcast",
                                         "all_gather", "gather",     "scatter", "reduce_scatter",
                                         "all_to_all", "send",       "recv"};
    return op >= 0 && op < YOKE_COMM_OP_COUNT ? kNames[op] : "no known op";
}

Flow::Flow(Comm &comm, const yoke_collective &call)
    : comm_(comm), call_(call), start_(Clock::now()), since_(start_)
{
}

// In pieces that an int can count; of one tag they arrive in their order.
void Flow::send(const void *data, int64_t bytes, int to, int tag, int blamed)
{
    const char *from = static_cast<const char *>(data);
    for (int64_t at = 0; at < bytes || at == 0; at += comm_.most_bytes) {
        const auto count = static_cast<int>(std::min(bytes - at, comm_.most_bytes));
        Operation &made = operations_.emplace_back();
        made.peer = blamed;
        note(MPI_Isend(from + at, count, MPI_BYTE, to, tag, comm_.ranks, &made.request),
             "MPI_Isend");
    }
}

void Flow::receive(void *data, int64_t bytes, int from, int tag)
{
    char *to = static_cast<char *>(data);
    for (int64_t at = 0; at < bytes || at == 0; at += comm_.most_bytes) {
        const auto count = static_cast<int>(std::min(bytes - at, comm_.most_bytes));
        Operation &made = operations_.emplace_back();
        made.peer = from;
        made.is_data = tag != kHeaderTag;
        note(MPI_Irecv(to + at, count, MPI_BYTE, from, tag, comm_.ranks, &made.request),
             "MPI_Irecv");
    }
}

// ---- waiting --------------------------------------------------------------------------------------------------------

yoke_status Flow::look(bool *is_done)
{
    *is_done = true;
    for (Operation &one : operations_) {
        if (one.is_done || code_ != MPI_SUCCESS) continue;
        int flag = 0;
        MPI_Status status;
        note(MPI_Test(&one.request, &flag, &status), "MPI_Test");
        one.is_done = flag != 0;
        if (flag && one.peer >= 0) MPI_Get_count(&status, MPI_BYTE, &one.bytes);
        *is_done &= one.is_done;
    }
    if (code_ == MPI_SUCCESS) return YOKE_OK;
    return give_up(fail_broken());
}

// At first without a pause, then a step behind whoever wants the processor; a wait that is long sleeps, a
// thousandth of a second at most, since MPI moves nothing while nobody looks.
static void pause_after(std::chrono::nanoseconds waited)
{
    using namespace std::chrono_literals;
    if (waited < 50us) return;
    if (waited < 20ms) {
        sched_yield();
        return;
    }
    const timespec nap = {0, waited < 200ms ? 50'000 : 1'000'000};
    nanosleep(&nap, nullptr);
}

yoke_status Flow::rest()
{
    const Clock::time_point now = Clock::now();
    if (looks_++ == 0) since_ = asked_ = now, gone_ = -1;
    if (comm_.aborted.load()) {
        if (call_.fault) call_.fault->kind = YOKE_COMM_FAULT_ABORTED;
        return give_up(fail(YOKE_E_CANCELLED, "mpi: %s, call %llu, was aborted",
                            call_name(call_.op),
                            static_cast<unsigned long long>(call_.signature->sequence)));
    }
    if (call_.timeout_s >= 0 && now - start_ >= std::chrono::duration<double>(call_.timeout_s))
        return give_up(fail_late());
    if (yoke_status status = look_for_gone(now)) return status;
    pause_after(now - since_);
    return YOKE_OK;
}

yoke_status Flow::wait()
{
    looks_ = 0;
    for (bool is_done = false;;) {
        if (yoke_status status = look(&is_done)) return status;
        if (is_done) return YOKE_OK;
        if (yoke_status status = rest()) return status;
    }
}

// ---- failure --------------------------------------------------------------------------------------------------------

// What MPI has begun it goes on with: the memory of it must stay.
yoke_status Flow::give_up(yoke_status status)
{
    comm_.has_failed = true;
    const bool is_under_way = std::ranges::any_of(
        operations_, [](const Operation &one) { return one.request != MPI_REQUEST_NULL; });
    if (!is_under_way) return status;
    comm_.is_abandoned = true;
    note_abandoned();
    if (call_.fault) call_.fault->keeps_memory = 1;
    return status;
}

// The lowest of those that are waited for, or -1 where MPI does not tell.
int Flow::missing_rank() const
{
    int lowest = comm_.size;
    for (const Operation &one : operations_)
        if (!one.is_done && one.peer >= 0) lowest = std::min(lowest, one.peer);
    return lowest < comm_.size ? lowest : -1;
}

yoke_status Flow::fail_late()
{
    const int rank = missing_rank();
    if (call_.fault) {
        call_.fault->kind = YOKE_COMM_FAULT_LATE;
        call_.fault->rank = rank;
    }
    const auto sequence = static_cast<unsigned long long>(call_.signature->sequence);
    if (rank >= 0)
        return fail(YOKE_E_TIMEOUT, "mpi: %s, call %llu: rank %d did not come within %.4g s",
                    call_name(call_.op), sequence, rank, call_.timeout_s);
    return fail(
        YOKE_E_TIMEOUT,
        "mpi: %s, call %llu: all ranks came, but their elements did not pass within %.4g s; a rank stopped amid the call, or the time is too short for so much",
        call_name(call_.op), sequence, call_.timeout_s);
}

yoke_status Flow::fail_mismatch(int rank, const Signature &mine, const Signature &theirs)
{
    if (call_.fault) {
        call_.fault->kind = YOKE_COMM_FAULT_MISMATCH;
        call_.fault->rank = rank;
        call_.fault->theirs = theirs;
    }
    const auto number = [](uint64_t x) { return static_cast<unsigned long long>(x); };
    const auto elements = [](int64_t x) { return static_cast<long long>(x); };
    return give_up(fail(
        YOKE_E_COMM,
        "mpi: this rank called %s, call %llu of group %llu: %lld of dtype %d, reduction %d, root %d; rank %d called %s, call %llu of group %llu: %lld of dtype %d, reduction %d, root %d",
        call_name(mine.op), number(mine.sequence), number(mine.group), elements(mine.count),
        mine.dtype, mine.reduction, mine.root, rank, call_name(theirs.op), number(theirs.sequence),
        number(theirs.group), elements(theirs.count), theirs.dtype, theirs.reduction, theirs.root));
}

}  // namespace yoke::mpi
