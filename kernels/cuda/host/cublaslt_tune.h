// Choosing among cuBLASLt's algorithms by trying them, where YOKE_CUBLASLT_AUTOTUNE is 1.
//
// Contract
//  * A plan's first product then waits for the device while each of the eight algorithms that cuBLASLt thinks best is
//    timed; what they compute is the product itself, so trying them changes nothing.
//  * Winners are kept in the file that YOKE_CUBLASLT_AUTOTUNE_FILE names, a line each, for this version of cuBLASLt
//    and this kind of GPU. Lines of others, and lines that cannot be read, are passed over.
#pragma once

#include "kernels/cuda/host/cublaslt_library.h"
#include "kernels/cuda/host/relaxed.h"

namespace yoke::cuda {

constexpr int kTuned = 8;

// Whether to try algorithms at all: not while the stream is being captured, which forbids waiting.
bool is_tuning(const yoke_launch *launch);

// The algorithm that won before, by the file. False too where this GPU's name cannot be had.
bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo);

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan);

class Stopwatch {
public:
    explicit Stopwatch(const yoke_launch *launch);
    ~Stopwatch();
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

    // False from the first failure of a call that times, which is logged: no algorithm is known to be the fastest then.
    bool works() const { return works_; }

    // Milliseconds of the fastest of a few runs; negative if one fails. run() starts work on the launch's stream.
    template <class F>
    float best_of(const F &run)
    {
        float best = -1;
        for (int trial = 0; trial < kTrials; ++trial) {
            const float taken = start() && run() ? stop() : -1;
            if (taken < 0) return -1;
            if (trial == 1 || (trial && taken < best)) best = taken;  // the first one warms up
        }
        return best;
    }

private:
    static constexpr int kTrials = 4;
    void check(cudaError_t error, const char *what);
    bool start();
    float stop();  // waits

    const Relaxed relaxed_;  // for it waits
    const Device &device_;
    cudaStream_t stream_;
    cudaEvent_t first_ = nullptr, last_ = nullptr;
    bool works_ = true;
};

}  // namespace yoke::cuda
