// MPI operations of a call, and the wait for them. The operations are tested in turn, at first without a pause, then
// between naps. The wait ends when all are done, an operation has failed, the call's time is over, or the
// communicator is aborted.
#pragma once

#include <chrono>

#include "kernels/mpi/comm.h"

namespace yoke::mpi {

// Tags. All headers of calls have the same tag, so a rank that expects another call sees the header. Each message's
// data has a tag from the message's number.
constexpr int kHeaderTag = 1;
constexpr int kFirstDataTag = 2, kDataTags = 30000;

struct Operation {
    MPI_Request request = MPI_REQUEST_NULL;
    int peer = -1;         // rank awaited by the operation
    int bytes = 0;         // received bytes
    bool is_data = false;  // elements of a call begun by the peer, or by all ranks
    bool is_done = false;
};

class Flow {
public:
    Flow(Comm &comm, const yoke_collective &call);

    void send(const void *data, int64_t bytes, int to, int tag, int blamed);
    void receive(void *data, int64_t bytes, int from, int tag);
    // Adds an operation of all ranks. Returns its request, for a call of MPI to fill in.
    MPI_Request *add()
    {
        operations_.emplace_back().is_data = true;
        return &operations_.back().request;
    }
    // Notes the code of an MPI call; wait() reports an error.
    void note(int code, const char *call)
    {
        if (code != MPI_SUCCESS && code_ == MPI_SUCCESS) code_ = code, failed_ = call;
    }

    yoke_status wait();
    // Tests all operations; *is_done is true if all are done. Returns a failure if a call of MPI has failed.
    yoke_status look(bool *is_done);
    // Pauses between two looks. Returns a failure if the call was aborted, its time is over, or an awaited rank has
    // gone.
    yoke_status rest();
    const std::deque<Operation> &operations() const { return operations_; }
    void clear() { operations_.clear(); }

    yoke_status fail_mismatch(int rank, const Signature &mine, const Signature &theirs);

private:
    using Clock = std::chrono::steady_clock;

    yoke_status give_up(yoke_status status);
    int missing_rank() const;
    yoke_status fail_late();
    void find_awaited(std::vector<int> &to_come, std::vector<int> &amid) const;
    int ask(const std::vector<int> &ranks, bool died) const;
    yoke_status look_for_gone(Clock::time_point now);
    yoke_status fail_gone(int rank);
    yoke_status fail_broken();

    Comm &comm_;
    const yoke_collective &call_;
    const Clock::time_point start_;
    std::deque<Operation> operations_;
    int code_ = MPI_SUCCESS;
    const char *failed_ = "";
    // State of the current wait.
    Clock::time_point since_, asked_;
    uint64_t looks_ = 0;
    int gone_ = -1;  // awaited rank that has gone, and the time of the report
    Clock::time_point gone_since_;
};

// Exchanges signatures with all ranks, and compares them. Returns a failure if a rank makes another call.
yoke_status greet(Comm &comm, Flow &flow, const yoke_collective &call);

}  // namespace yoke::mpi
