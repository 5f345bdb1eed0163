// Call of MPI that waits for other processes and has no deadline. A detached thread runs the call. If the other
// processes do not arrive, the thread is left behind.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include "kernels/mpi/mpi.h"

namespace yoke::mpi {

class DetachedCall {
public:
    // Starts `run` in a detached thread. `run` returns MPI's code and owns all its data.
    static std::shared_ptr<DetachedCall> begin(std::function<int()> run);

    using Clock = std::chrono::steady_clock;
    // Waits until the call has ended, and returns its status. Fails if the member's time, counted from `since`, is
    // over, or if the group has failed. `call` and `why_late` are for the message.
    yoke_status wait(const yoke_comm_member &member, Clock::time_point since, const char *call,
                     const char *why_late);

private:
    std::mutex mutex_;
    std::condition_variable ended_;
    bool is_done_ = false;
    int code_ = MPI_SUCCESS;
};

}  // namespace yoke::mpi
