// Collective on its way to NCCL: buffers, count and dtype in NCCL's form, and the work before and after.
//
// Contract
//  * prepare() and finish() put work on the call's stream, before and after NCCL's work. issue() calls NCCL, in a
//    Turn of the communicator. If needs_group() is true or other calls are issued together, issue() runs in an NCCL
//    group.
//  * Differences between NCCL and the contract (core/backend/comm.h) are corrected here: min and max of floats go as
//    keys (kernels/cuda/ops/collective.h). Input that overlaps the output in a way forbidden by NCCL is copied.
#pragma once

#include "kernels/cuda/host/nccl/comm.h"
#include "kernels/cuda/ops/collective.h"

namespace yoke::cuda::nccl {

class Plan {
public:
    Plan() : scratch_(&launch_) {}
    Plan(const Plan &) = delete;
    Plan &operator=(const Plan &) = delete;

    yoke_status prepare(Comm &comm, const yoke_collective &call);
    ncclResult_t issue(const Calls &nccl) const;
    yoke_status finish();
    // Keeps scratch, and notes in the call's fault that the caller must keep the call's memory. The work may still
    // run, though the call has failed.
    void keep_memory();

    bool needs_group(const Calls &nccl) const;
    bool is_empty() const { return call_.count == 0; }
    Comm &comm() const { return *comm_; }
    const yoke_collective &call() const { return call_; }
    // Returns the name of NCCL's function, for messages.
    const char *function() const;

private:
    void choose_form();
    int64_t parts(bool of_in) const;
    bool has_result() const;
    bool must_copy() const;
    yoke_status copy_in(uint64_t bytes);
    ncclResult_t issue_parts(const Calls &nccl) const;
    char *part_of(const void *base, int rank) const;

    Comm *comm_ = nullptr;
    yoke_collective call_{};
    yoke_launch launch_{};  // for kernels: device and stream alone
    Scratch scratch_;
    Form form_ = Form::kOwn;
    const void *in_ = nullptr;  // as NCCL is given them
    void *out_ = nullptr;
    size_t count_ = 0;
    ncclDataType_t dtype_ = ncclUint8;
    ncclRedOp_t reduction_ = ncclSum;
};

}  // namespace yoke::cuda::nccl
