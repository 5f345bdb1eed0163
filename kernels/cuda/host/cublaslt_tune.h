// Choosing among cuBLASLt's algorithms by trying them, where YOKE_CUBLASLT_AUTOTUNE is 1.
//
// Contract
//  * A plan's first product then waits for the device while the eight algorithms that cuBLASLt thinks best are timed
//    (fastest_of); what they compute is the product itself, so trying them changes nothing. They share one workspace,
//    the largest that one of them asks for: so none is timed, or chosen, with less than it wants.
//  * Nothing is timed while the stream is being captured: the plan takes cuBLASLt's first, or a winner that was kept,
//    and is tuned by its first product outside of a capture. What was captured stays as it is.
//  * Winners are kept in the file that YOKE_CUBLASLT_AUTOTUNE_FILE names, a line each, for this version of cuBLASLt
//    and this kind of GPU. Lines of others, and lines that cannot be read, are passed over.
#pragma once

#include <algorithm>

#include "kernels/cuda/host/cublaslt_library.h"

namespace yoke::cuda {

constexpr int kTuned = 8;

// Whether to try algorithms: later, while the stream is being captured.
enum class Tuning { kOff, kLater, kNow };
Tuning tuning_of(const yoke_launch *launch);

// The algorithm that won before, by the file. False too where this GPU's name cannot be had.
bool recall_winner(const yoke_launch *launch, const CublasLt &lt, const PlanKey &key,
                   cublasLtMatmulAlgo_t *algo);

void keep_winner(const yoke_launch *launch, const CublasLt &lt, const Plan &plan);

// On the launch's stream. The thread is relaxed, for it waits.
class Stopwatch {
public:
    explicit Stopwatch(const yoke_launch *launch);
    ~Stopwatch();
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

    // False from the first failure of a call that times, which is logged: no algorithm is known to be the fastest then.
    bool works() const { return works_; }

    // Milliseconds of a run, of so many that follow each other; negative if one fails, as run() then says. It starts
    // work on the launch's stream.
    template <class F>
    float time(int repetitions, const F &run)
    {
        if (!start()) return -1;
        for (int i = 0; i < repetitions; ++i)
            if (!run()) return -1;
        const float taken = stop();
        return taken < 0 ? -1 : taken / static_cast<float>(repetitions);
    }

private:
    void check(cudaError_t error, const char *what);
    bool start();
    float stop();  // waits

    const Device &device_;
    cudaStream_t stream_;
    cudaEvent_t first_ = nullptr, last_ = nullptr;
    bool works_ = true;
};

// Milliseconds, but for the first: of the products of a burst, at most; of it; of all, after which nothing more is
// begun but for two algorithms. Who takes that much longer than the fastest, and twice its time, is out of the race.
constexpr int kMostProducts = 32, kRounds = 5;
constexpr float kBurst = 0.5f, kBudget = 200, kOutrun = 0.2f;
constexpr float kTie = 0.98f;  // of a time: what is no faster than that is no faster

// Which of `count` algorithms (at most kTuned) is the fastest, or -1; run(i) starts a product by one of them and says
// whether it could. A burst of products lies between two events, so that it is not the way from the host to the device
// that is timed; each takes its turn in every round, and the best of its rounds counts. Of those that are as fast as
// each other the first is taken: cuBLASLt thinks more of it. Products that the device does in less time than the host
// needs to start one are all as fast as each other.
template <class F>
int fastest_of(Stopwatch &watch, int count, const F &run)
{
    float best[kTuned], least = 0, spent = 0;
    const auto time = [&](int i, int repetitions) {
        const float taken = watch.time(repetitions, [&] { return run(i); });
        spent += taken > 0 ? taken * static_cast<float>(repetitions) : 0;
        return taken;
    };
    for (int i = 0; i < count; ++i) {
        // The first product loads code; if it was a long one, it tells enough.
        best[i] = i < 2 || spent < kBudget ? time(i, 1) : -1;
        if (best[i] > 0 && best[i] < kBudget / kTuned) best[i] = time(i, 1);
        if (best[i] > 0 && (least <= 0 || best[i] < least)) least = best[i];
    }
    for (int round = 0; round < kRounds && spent < kBudget; ++round)
        for (int i = 0; i < count; ++i) {
            if (best[i] <= 0 || best[i] > 2 * least + kOutrun) continue;
            const int repetitions =
                static_cast<int>(std::clamp<float>(kBurst / best[i], 1, kMostProducts));
            const float taken = time(i, repetitions);
            best[i] = taken <= 0 ? -1 : std::min(best[i], taken);
            if (best[i] > 0) least = std::min(least, best[i]);
        }
    int fastest = -1;
    for (int i = 0; i < count; ++i)
        if (best[i] > 0 && (fastest < 0 || best[i] < kTie * best[fastest])) fastest = i;
    return fastest;
}

}  // namespace yoke::cuda
