#include "kernels/mpi/flow.h"

#include <sched.h>
#include <time.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "kernels/common/collective.h"
#include "kernels/mpi/job.h"

namespace yoke::mpi {

namespace {

using namespace std::chrono_literals;

// Time between two looks for ranks that have gone. MPI does not report such ranks, but the core does. Each look asks
// another process.
constexpr auto kBetween = 200ms;
// Time until a gone rank is a failure. Elements sent before may arrive after the report that the rank has gone. If a
// rank died in the middle of a transfer, its elements never arrive, but transfers of other ranks may take long.
constexpr auto kToCome = 300ms, kAmid = 1000ms;
// If MPI itself fails because a peer has ended, the core soon reports this peer.
constexpr auto kToBeHeard = 500ms, kALittle = 10ms;

}  // namespace

Flow::Flow(Comm &comm, const yoke_collective &call)
    : comm_(comm), call_(call), start_(Clock::now()), since_(start_)
{
}

// Starts to send data, in pieces that an int can count. Pieces of one tag arrive in order. While a piece is not sent,
// the call waits for rank `blamed` (-1: no known rank).
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

// Pauses: at first not at all, then yields the processor. A long wait sleeps, a thousandth of a second at most,
// because MPI moves data only during tests.
static void pause_after(std::chrono::nanoseconds waited)
{
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
                            kernels::call_name(call_.op),
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

// Ends the call with a failure and returns `status`. MPI goes on with started operations, so their memory must stay.
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

// Returns the lowest rank awaited by an unfinished operation, or -1 if all such operations are operations of all
// ranks.
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
        return fail(YOKE_E_TIMEOUT, "mpi: %s, call %llu: rank %d did not arrive within %.4g s",
                    kernels::call_name(call_.op), sequence, rank, call_.timeout_s);
    return fail(
        YOKE_E_TIMEOUT,
        "mpi: %s, call %llu: all ranks arrived, but the transfer did not finish within %.4g s; check whether a rank stopped during the call, or raise the timeout",
        kernels::call_name(call_.op), sequence, call_.timeout_s);
}

yoke_status Flow::fail_mismatch(int rank, const Signature &mine, const Signature &theirs)
{
    if (call_.fault) {
        call_.fault->kind = YOKE_COMM_FAULT_MISMATCH;
        call_.fault->rank = rank;
        call_.fault->theirs = theirs;
    }
    return give_up(
        kernels::tell_mismatch({g_host, "mpi", comm_.rank, comm_.size}, mine, rank, theirs));
}

// ---- ranks that released the group, or died -------------------------------------------------------------------------

// Finds ranks that have not begun the call, and ranks with elements in transit. A rank that released the group had
// sent its elements before.
void Flow::find_awaited(std::vector<int> &to_come, std::vector<int> &amid) const
{
    for (const Operation &one : operations_) {
        if (one.is_done) continue;
        if (one.peer >= 0) (one.is_data ? amid : to_come).push_back(one.peer);
        if (one.peer >= 0 || !one.is_data) continue;
        amid.resize(static_cast<size_t>(comm_.size));
        std::iota(amid.begin(), amid.end(), 0);
    }
    std::erase_if(to_come, [&](int rank) { return std::ranges::count(amid, rank) > 0; });
}

int Flow::ask(const std::vector<int> &ranks, bool died) const
{
    if (ranks.empty()) return -1;
    return call_.find_gone(call_.user, ranks.data(), static_cast<int32_t>(ranks.size()), died);
}

yoke_status Flow::look_for_gone(Clock::time_point now)
{
    if (!call_.find_gone || now - asked_ < kBetween) return YOKE_OK;
    std::vector<int> to_come, amid;
    find_awaited(to_come, amid);
    int rank = ask(to_come, false);
    const bool is_amid = rank < 0;
    if (is_amid) rank = ask(amid, true);
    asked_ = Clock::now();
    if (gone_ != rank) gone_ = rank, gone_since_ = now;
    if (rank < 0 || now - gone_since_ < (is_amid ? kAmid : kToCome)) return YOKE_OK;
    return give_up(fail_gone(rank));
}

yoke_status Flow::fail_gone(int rank)
{
    if (call_.fault) {
        call_.fault->kind = YOKE_COMM_FAULT_DIED;
        call_.fault->rank = rank;
    }
    return fail(YOKE_E_COMM, "mpi: %s, call %llu: rank %d left the group or died",
                kernels::call_name(call_.op),
                static_cast<unsigned long long>(call_.signature->sequence), rank);
}

yoke_status Flow::fail_broken()
{
    std::vector<int> all(static_cast<size_t>(comm_.size));
    std::iota(all.begin(), all.end(), 0);
    const Clock::time_point end = Clock::now() + kToBeHeard;
    while (call_.find_gone && Clock::now() < end && !comm_.aborted.load()) {
        if (const int rank = ask(all, true); rank >= 0) return fail_gone(rank);
        std::this_thread::sleep_for(kALittle);
    }
    return fail_mpi(code_, failed_);
}

}  // namespace yoke::mpi
