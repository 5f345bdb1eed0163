// Threads that share a job's parts, and their waits for each other.
//
// Contract
//  * A job is a number of parts. Each thread works off its own range of parts. Then it takes parts from the ranges of
//    other threads. So no untaken part waits for a preempted thread. Chance decides which thread runs a part: a
//    result must not depend on it.
//  * A single thread at a time holds the team and calls its functions. The holder is the team's thread 0, and also
//    works.
//  * A waiting thread polls for a while and then sleeps in the kernel. The length of a poll, and the number of parts,
//    depend on the machine's behaviour: see the waits in team.cpp.
#pragma once

#include <pthread.h>

#include <atomic>

#include "kernels/cpu/cpu.h"

namespace yoke::cpu {

constexpr int kMostThreads = 1024;  // limit of the program's setting

class Team {
public:
    // Starts or ends workers until the team has `threads` threads, including the holder. Returns the number of
    // threads. If the system gives fewer, *error has errno's number.
    int resize(int threads, int *error);

    // Runs fn(context, part, slot) for each part below count and returns when all have run. Each thread that runs parts
    // has a slot of its own, below size() and below count.
    void run(int64_t count, ChunkFn fn, void *context);

    int size() const { return size_; }

    // Returns whether other processes want the processors, judged by recent waits. Any thread may ask.
    bool is_machine_busy() const;

    // Resets the team to the holder alone. Called in a forked child, where the workers are missing.
    void forget();

private:
    struct alignas(64) Share {
        std::atomic<int64_t> next{0};  // first untaken part; `end` or more if all are taken
        int64_t end = 0;
    };
    struct Worker {
        pthread_t thread = {};
        Team *team = nullptr;
        int number = 0;     // in the team; the holder's is 0
        uint32_t seen = 0;  // number of the last known job
    };

    static void *thread_main(void *worker);
    bool start(int number, int *error);
    void serve(Worker &worker);
    bool poll(const Worker &worker, int64_t most);
    bool sleep(const Worker &worker);
    bool has_call(const Worker &worker, uint32_t word) const;
    bool enter(Worker &worker);
    void leave();
    bool run_next(Share &share, int &slot);
    int64_t work(int thread, int slot);  // returns the number of parts that it ran
    void wake(int most);
    void await_last(int64_t begin, int64_t parts);
    void note_busy(int64_t now);

    // Word on which all threads wait: whether a job is open, whether the holder sleeps until its end, the number of
    // workers inside, and the job's number.
    alignas(64) std::atomic<uint32_t> word_{0};
    alignas(64) std::atomic<int> sleepers_{0};  // workers asleep or about to sleep, not woken yet
    std::atomic<int> wanted_{1};                // workers of this number and above are to end
    std::atomic<int64_t> busy_until_{0};        // nanoseconds of the monotonic clock
    std::atomic<int64_t> last_sign_{0};         // when there was a sign of that
    int size_ = 1;

    // The job. The holder writes it only while the job is closed and no worker is inside.
    ChunkFn fn_ = nullptr;
    void *context_ = nullptr;
    bool wakes_on_ = false;  // a woken worker wakes further workers

    alignas(64) std::atomic<int> slots_{0};  // number of slots given out in this job
    Share shares_[kMostThreads];
    Worker workers_[kMostThreads];
};

}  // namespace yoke::cpu
