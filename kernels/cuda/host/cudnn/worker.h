// Handles of cuDNN's, each with the plans that were made for it.
//
// Contract
//  * A worker is lent to one thread for one call, so that neither handle nor plan is ever used by two. The one that was
//    given back last is lent first: a thread that is alone always gets the same one, and its plans.
//  * Inside the context of its device. A stream is set where it is another than the last call's.
#pragma once

#include "kernels/cuda/host/cudnn/plans.h"
#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

// Which op, and all that its graph and its rules depend on; words that an op has no use for are 0.
struct CudnnKey {
    int64_t words[40];
};

struct CudnnEntry {
    CudnnKey key;
    uint64_t used;     // when, for eviction; 0: none
    bool exists;       // else cuDNN has no engine for this
    bool untuned;      // its plan is the first, which was never measured against others
    bool is_tried;     // ran once, and has loaded its code
    uint64_t refused;  // the least workspace that is beyond the limit; 0: none is
    CudnnPlan plan;
};

class CudnnWorker {
public:
    explicit CudnnWorker(const CudnnCalls &call) : call_(call) {}
    CudnnWorker(const CudnnWorker &) = delete;
    CudnnWorker &operator=(const CudnnWorker &) = delete;

    CudnnFailure start();
    CudnnFailure finish();  // gives its handle back, and is used no more
    CudnnFailure set_stream(cudaStream_t stream);
    Target target() const { return {handle_, nullptr}; }

    CudnnEntry *find(const CudnnKey &key);
    // Where a key's plan goes: in a full set the one that was not used for longest makes room.
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

// For the length of one call. Without a worker where cuDNN cannot serve, of which one warning tells.
class CudnnLoan {
public:
    explicit CudnnLoan(const yoke_launch *launch);
    ~CudnnLoan();
    CudnnLoan(const CudnnLoan &) = delete;
    CudnnLoan &operator=(const CudnnLoan &) = delete;

    yoke_status status() const { return status_; }  // of a device that is lost
    CudnnWorker *worker() const { return worker_; }

private:
    CudnnWorker *make(const yoke_launch *launch);
    void give_back();

    const int32_t device_;
    yoke_status status_ = YOKE_OK;
    CudnnWorker *worker_ = nullptr;
};

}  // namespace yoke::cuda
