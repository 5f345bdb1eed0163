// Ranks that have let the group go, or died, while this one waits for them. MPI does not tell of them, but the host
// knows.
#include <algorithm>
#include <numeric>
#include <thread>

#include "kernels/mpi/flow.h"

namespace yoke::mpi {

namespace {

using namespace std::chrono_literals;

// Between two looks, which ask another process.
constexpr auto kBetween = 200ms;
// What a rank has sent may come after the news that it has gone; what it died amid comes no more, but others may take
// long over theirs.
constexpr auto kToCome = 300ms, kAmid = 1000ms;
// Where MPI itself fails since a peer has ended, the host is about to hear of that.
constexpr auto kToBeHeard = 500ms, kALittle = 10ms;

}  // namespace

// Those that have not come yet, and those whose elements are on their way: who has let the group go had sent them.
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
    return fail(YOKE_E_COMM, "mpi: %s, call %llu: rank %d has gone", call_name(call_.op),
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
