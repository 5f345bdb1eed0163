#include "kernels/mpi/detached_call.h"

#include <chrono>
#include <thread>

#include "kernels/common/signals_blocked.h"
#include "kernels/mpi/job.h"

namespace yoke::mpi {

std::shared_ptr<DetachedCall> DetachedCall::begin(std::function<int()> run)
{
    auto made = std::make_shared<DetachedCall>();
    const kernels::SignalsBlocked blocked;
    std::thread([made, run = std::move(run)] {
        const int code = run();
        const std::lock_guard lock(made->mutex_);
        made->code_ = code;
        made->is_done_ = true;
        made->ended_.notify_all();
    }).detach();
    return made;
}

yoke_status DetachedCall::wait(const yoke_comm_member &member, Clock::time_point since,
                               const char *call, const char *why_late)
{
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    while (!ended_.wait_for(lock, 50ms, [&] { return is_done_; })) {
        lock.unlock();  // a handler of the host's may run there
        const bool is_over = member.is_over && member.is_over(member.user);
        lock.lock();
        const bool is_late =
            member.timeout_s >= 0 &&
            Clock::now() - since >= std::chrono::duration<double>(member.timeout_s);
        if (is_done_ || (!is_over && !is_late)) continue;
        note_abandoned();
        if (is_over)
            return fail(YOKE_E_CANCELLED, "mpi: the group failed while its ranks created it");
        if (member.fault) member.fault->kind = YOKE_COMM_FAULT_LATE;
        return fail(YOKE_E_TIMEOUT, "mpi: %s did not return within %.4g s: %s", call,
                    member.timeout_s, why_late);
    }
    return code_ == MPI_SUCCESS ? YOKE_OK : fail_mpi(code_, call);
}

}  // namespace yoke::mpi
