// Choosing among a library's algorithms by trying them: a stopwatch, a race, and a file in which winners are kept.
//
// Contract
//  * What algorithms compute is the same, so trying them changes nothing. None is timed while the stream is being
//    captured.
//  * A file of winners has a line each, for a version of the library and a kind of GPU. Lines of others, and lines that
//    cannot be read, are passed over. Several processes may share it.
#pragma once

#include <algorithm>

#include "kernels/cuda/host/support.h"

namespace yoke::cuda {

constexpr int kMostTuned = 64;

// Whether to try algorithms: later, while the stream is being captured.
enum class Tuning { kOff, kLater, kNow };

// Not kOff, but where the stream cannot be asked; `tuned` is "a matrix product".
Tuning tuning_on(const yoke_launch *launch, const char *tuned);

// What was tuned: a winner's line begins with all of it. `setting` names the file; without one nothing is kept.
struct Tuned {
    const char *setting, *library;
    size_t version;
    const char *op;  // "", or one that the key does not tell
    const void *key;
    size_t key_bytes;
};

bool has_winners_file(const Tuned &tuned);

// The winner, bytes of one size, that was kept before. False too where this GPU's name cannot be had.
bool recall_winner(const yoke_launch *launch, const Tuned &tuned, void *winner, size_t bytes);
void keep_winner(const yoke_launch *launch, const Tuned &tuned, const void *winner, size_t bytes);

// On the launch's stream. The thread is relaxed, for it waits.
class Stopwatch {
public:
    Stopwatch(const yoke_launch *launch, const char *tuned);  // "a matrix product"
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
    const char *tuned_;
    cudaStream_t stream_;
    cudaEvent_t first_ = nullptr, last_ = nullptr;
    bool works_ = true;
};

// Milliseconds, but for the first: of the runs of a burst, at most; of it; of all, after which nothing more is begun
// but for two algorithms; of a first run that tells enough. Who takes that much longer than the fastest, and twice its
// time, is out of the race.
constexpr int kMostRuns = 32, kRounds = 5;
constexpr float kBurst = 0.5f, kBudget = 200, kLong = 25, kOutrun = 0.2f;
constexpr float kTie = 0.98f;  // of a time: what is no faster than that is no faster

// Which of `count` algorithms (at most kMostTuned) is the fastest, or -1; run(i) starts one of them and says whether it
// could. A burst of runs lies between two events, so that it is not the way from the host to the device that is timed;
// each takes its turn in every round, and the best of its rounds counts. Of those that are as fast as each other the
// first is taken: the library thinks more of it. What the device does in less time than the host needs to start it is
// all as fast as each other.
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
        // The first run loads code; if it was a long one, it tells enough.
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
