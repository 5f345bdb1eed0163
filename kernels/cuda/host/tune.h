// Choice among a library's algorithms by trial: a stopwatch, a race, and a file of winners.
//
// Contract
//  * Algorithms may add in different orders, so the last places of a result depend on the winner. A deterministic
//    launch tries none, because times differ from run to run. No algorithm is timed while the stream is captured.
//  * Each line of a file of winners is for a version of the library and a kind of GPU. Other lines, and unreadable
//    lines, are skipped. Several processes may share the file.
#pragma once

#include <algorithm>

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

constexpr int kMostTuned = 64;

// Time to try algorithms: never, after the stream's capture, or now.
enum class Tuning { kOff, kLater, kNow };

// Returns kNow, or kLater while the launch's stream is captured. If CUDA cannot say this, logs it and returns kOff.
// `tuned` is a name for messages: "a matrix product".
Tuning tuning_on(const yoke_launch *launch, const char *tuned);

// Tuned case: a winner's line begins with all these values. `setting` names the file; without a file, winners are not
// stored.
struct Tuned {
    const char *setting, *library;
    size_t version;
    const char *op;  // "", or an op that is not in the key
    const void *key;
    size_t key_bytes;
};

bool has_winners_file(const Tuned &tuned);

// Reads the stored winner, which has `bytes` bytes. Returns false if no file is named, the file has no such winner,
// or this GPU's name is unknown.
bool recall_winner(const yoke_launch *launch, const Tuned &tuned, void *winner, size_t bytes);
// Appends the winner to the file, if a file is named. A failure to write is logged.
void keep_winner(const yoke_launch *launch, const Tuned &tuned, const void *winner, size_t bytes);

// Timer of work on the launch's stream. The thread must be relaxed, because the timer waits.
class Stopwatch {
public:
    Stopwatch(const yoke_launch *launch, const char *tuned);  // "a matrix product"
    ~Stopwatch();
    Stopwatch(const Stopwatch &) = delete;
    Stopwatch &operator=(const Stopwatch &) = delete;

    // Returns false after the first failure of a timing call, which is logged: the fastest algorithm is unknown then.
    bool works() const { return works_; }

    // Returns the milliseconds of a run, averaged over `repetitions` runs in sequence. `run` starts work on the
    // launch's stream. Returns a negative number if run() returns false or a timing call fails.
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
    const char *tuned_;
    cudaStream_t stream_;
    cudaEvent_t first_ = nullptr, last_ = nullptr;
    bool works_ = true;
};

// Limits. kMostRuns: runs of a burst; kRounds: rounds. In milliseconds: kBurst, length of a burst; kBudget, time of
// all trials, after which only the first two algorithms are still tried; kLong, a first run long enough to count;
// kOutrun. An algorithm leaves the race if its time exceeds twice the fastest time plus kOutrun.
constexpr int kMostRuns = 32, kRounds = 5;
constexpr float kBurst = 0.5f, kBudget = 200, kLong = 25, kOutrun = 0.2f;
constexpr float kTie = 0.98f;  // factor on a time: not below it counts as equal

// Returns the number of the fastest of `count` algorithms (at most kMostTuned), or -1. run(i) starts algorithm i and
// returns whether it could. A burst of runs lies between two events, so the way from the host to the device is not
// timed. Each algorithm runs in every round, and its best round counts. Of equally fast algorithms, the first is
// taken, because the library prefers it. If the device needs less time than the host needs for a start, algorithms
// count as equally fast.
template <class F>
int fastest_of(Stopwatch &watch, int count, const F &run)
{
    float best[kMostTuned], least = 0, spent = 0;
    const auto time = [&](int i, int repetitions) {
        const float taken = watch.time(repetitions, [&] { return run(i); });
        spent += taken > 0 ? taken * static_cast<float>(repetitions) : 0;
        return taken;
    };
    for (int i = 0; i < count; ++i) {
        // The first run loads code. If it took long, no second run is needed.
        best[i] = i < 2 || spent < kBudget ? time(i, 1) : -1;
        if (best[i] > 0 && best[i] < kLong) best[i] = time(i, 1);
        if (best[i] > 0 && (least <= 0 || best[i] < least)) least = best[i];
    }
    for (int round = 0; round < kRounds && spent < kBudget; ++round)
        for (int i = 0; i < count; ++i) {
            if (best[i] <= 0 || best[i] > 2 * least + kOutrun) continue;
            const int repetitions =
                static_cast<int>(std::clamp<float>(kBurst / best[i], 1, kMostRuns));
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
