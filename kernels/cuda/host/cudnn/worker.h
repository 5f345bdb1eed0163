// cuDNN handles, each with its plans.
//
// Contract
//  * A worker serves one thread for one call, so two threads never use the same handle or plan. The worker returned
//    last is used first: a lone thread always gets the same worker, with its plans.
//  * Inside the context of its device. The stream is set only if it differs from the last call's stream.
#pragma once

#include "kernels/cuda/host/cudnn/plans.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// Op, and all values on which its graph and rules depend. Words unused by an op are 0.
struct CudnnKey {
    int64_t words[44];
};

struct CudnnEntry {
    CudnnKey key;
    uint64_t used;     // clock of the last use, for eviction; 0: free
    bool exists;       // else cuDNN has no engine for this
    bool untuned;      // the first plan, not compared with others yet
    bool is_tried;     // ran once, and has loaded its code
    uint64_t refused;  // smallest workspace above the limit; 0 if there is none
    CudnnPlan plan;
};

class CudnnWorker {
public:
    explicit CudnnWorker(const CudnnCalls &call) : call_(call) {}
    CudnnWorker(const CudnnWorker &) = delete;
    CudnnWorker &operator=(const CudnnWorker &) = delete;

    CudnnFailure start();
    CudnnFailure finish();  // destroys the handle; the worker is used no more
    CudnnFailure set_stream(cudaStream_t stream);
    Target target() const { return {handle_, nullptr}; }

    CudnnEntry *find(const CudnnKey &key);
    // Returns an entry with this key and no plan. If the set is full, drops its least recently used plan.
    CudnnEntry &room_for(const CudnnKey &key);

    struct Operand {
        int64_t name;
        const void *address;
    };
    CudnnFailure run(const CudnnPlan &plan, const Operand *operands, int count, void *workspace);

    CudnnWorker *next = nullptr;

private:
    static constexpr int kSets = 64, kWays = 4;
    CudnnEntry *set_of(const CudnnKey &key);

    const CudnnCalls &call_;
    cudnnHandle_t handle_ = nullptr;
    cudaStream_t stream_ = nullptr;
    uint64_t clock_ = 0;
    CudnnEntry entries_[kSets][kWays] = {};
};

// Worker for the length of a call. If cuDNN does not work, there is no worker, and a single warning gives the reason.
class CudnnLoan {
public:
    explicit CudnnLoan(const yoke_launch *launch);
    ~CudnnLoan();
    CudnnLoan(const CudnnLoan &) = delete;
    CudnnLoan &operator=(const CudnnLoan &) = delete;

    yoke_status status() const { return status_; }  // YOKE_OK, or the device's loss
    CudnnWorker *worker() const { return worker_; }

private:
    CudnnWorker *make(const yoke_launch *launch);
    void give_back();

    const int32_t device_;
    yoke_status status_ = YOKE_OK;
    CudnnWorker *worker_ = nullptr;
};

}  // namespace yoke::cuda
