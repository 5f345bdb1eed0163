// A single word holds the state of a job, and every transition is an atomic operation on it:
//
//   open    the holder writes the job and ranges, then swaps in the next number with kOpen. A worker reads the word
//   with acquire when it enters, so it sees these writes.
//   enter   a worker counts itself in, by compare-and-swap from a word with kOpen. So no worker enters a closed job.
//   A late worker finds another number and has touched no data.
//   leave   the worker counts itself out, with release. The holder reads a count of 0 with acquire, so it sees the
//   results of all parts.
//   close   when no part is left, the holder drops kOpen and waits until no worker is inside. Only then does the
//   holder write the job again, so the job needs no atomics.
//
// Sleep and wake use two words. A worker counts itself among the sleepers and then reads the word. The holder swaps
// the word and then reads the count. All four steps are sequentially consistent, so at least one side sees the other.
// A sleeper never sleeps on an old word, because the kernel compares the word once more.
#include "kernels/cpu/team.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>

#include "kernels/common/signals_blocked.h"
#include "kernels/cpu/relax.h"

namespace yoke::cpu {

constexpr uint32_t kOpen = 1, kHolderSleeps = 2, kOneInside = 4;
constexpr uint32_t kInside = 0x1FFC;  // up to 2047 workers
constexpr uint32_t kOneJob = 0x2000;  // the job's number is in the bits from here on, and wraps

// Limits of a poll, in nanoseconds. If a worker finds work before it sleeps, its next poll is longer, else shorter:
// between two short ops of a training loop lie some 10 to 100 microseconds.
constexpr int64_t kShortPoll = 10'000, kLongPoll = 200'000;
// Sign of a busy machine: a wait this long for a part of another thread, or a poll that stood still this long.
constexpr int64_t kLongWait = 300'000;
// Longest normal wait, in parts. Without preemption, a wait is no longer than a part. For the holder's own parts: the
// last part ended in the middle of the other thread's part. For a single part, begun at the same time as the other
// thread's part: the difference between processors.
constexpr double kPartsToWait = 1.5, kPartsToWaitOfOne = 0.5;
// Time between two signs of a busy machine. A single sign may come from the system itself; beside a busy process,
// signs follow each other.
constexpr int64_t kSignsWithin = 30'000'000, kBusyFor = 100'000'000;
// Work worth a wake of a thread that must first take a processor from another thread.
constexpr int64_t kWorthWaking = 50'000;

constexpr size_t kStackBytes =
    2 << 20;  // whatever the system's default is; kernels keep tiles on the stack
constexpr int kWakesAtOnce = 4;

// Kind of a sleeper on the word: a wake reaches only sleepers of its kind.
constexpr uint32_t kForWork = 1, kForEnd = 2;

static long futex(std::atomic<uint32_t> &word, int call, uint32_t value, uint32_t who)
{
    return syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), call | FUTEX_PRIVATE_FLAG, value,
                   nullptr, nullptr, who);
}

static int64_t now_ns()
{
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

// ---- a busy machine -------------------------------------------------------------------------------------------------

void Team::note_busy(int64_t now)
{
    int64_t before = last_sign_.exchange(now, std::memory_order_relaxed);
    if (now - before < kSignsWithin) busy_until_.store(now + kBusyFor, std::memory_order_relaxed);
}

bool Team::is_machine_busy() const
{
    int64_t until = busy_until_.load(std::memory_order_relaxed);
    return until != 0 && now_ns() < until;
}

// ---- the workers ----------------------------------------------------------------------------------------------------

bool Team::has_call(const Worker &worker, uint32_t word) const
{
    bool has_job = (word & kOpen) && word / kOneJob != worker.seen;
    return has_job || worker.number >= wanted_.load(std::memory_order_relaxed);
}

// Polls for work, `most` nanoseconds at most. Returns whether there is work, or a reason to end.
bool Team::poll(const Worker &worker, int64_t most)
{
    constexpr int kPollsPerLook = 16;  // at the clock
    int64_t start = now_ns(), last = start;
    for (int i = 1; !has_call(worker, word_.load(std::memory_order_acquire)); i++) {
        relax();
        if (i % kPollsPerLook) continue;
        int64_t now = now_ns();
        if (now - last > kLongWait) note_busy(now);
        if (now - start > most) return false;
        last = now;
    }
    return true;
}

// Sleeps. Returns true if a thread woke this worker, false if there was work at once.
bool Team::sleep(const Worker &worker)
{
    sleepers_.fetch_add(1);
    uint32_t word = word_.load();
    bool woken = !has_call(worker, word) && futex(word_, FUTEX_WAIT_BITSET, word, kForWork) == 0;
    if (!woken) sleepers_.fetch_sub(1);  // a waking thread has already counted the woken workers
    return woken;
}

void Team::wake(int most)
{
    int asleep = std::min(sleepers_.load(), most);
    if (asleep <= 0) return;
    long woken = futex(word_, FUTEX_WAKE_BITSET, static_cast<uint32_t>(asleep), kForWork);
    if (woken > 0) sleepers_.fetch_sub(static_cast<int>(woken));
}

bool Team::enter(Worker &worker)
{
    uint32_t word = word_.load(std::memory_order_relaxed);
    do {
        if (!(word & kOpen) || word / kOneJob == worker.seen) return false;
    } while (!word_.compare_exchange_weak(word, word + kOneInside, std::memory_order_acquire,
                                          std::memory_order_relaxed));
    worker.seen = word / kOneJob;
    return true;
}

void Team::leave()
{
    uint32_t word = word_.fetch_sub(kOneInside, std::memory_order_release);
    if ((word & kHolderSleeps) && (word & kInside) == kOneInside)
        futex(word_, FUTEX_WAKE_BITSET, 1, kForEnd);
}

void Team::serve(Worker &worker)
{
    int64_t patience = kLongPoll;
    for (;;) {
        bool woken = false;
        if (poll(worker, is_machine_busy() ? kShortPoll : patience)) {
            patience = std::min(2 * patience, kLongPoll);
        } else {
            patience = std::max(patience / 2, kShortPoll);
            woken = sleep(worker);
        }
        if (worker.number >= wanted_.load(std::memory_order_acquire)) return;
        if (!enter(worker)) continue;
        if (woken && wakes_on_) wake(2);
        work(worker.number, -1);
        leave();
    }
}

void *Team::thread_main(void *argument)
{
    Worker &worker = *static_cast<Worker *>(argument);
    char name[16];
    snprintf(name, sizeof(name), "yoke-%d", worker.number);
    pthread_setname_np(pthread_self(), name);
    enter_team();
    worker.team->serve(worker);
    return nullptr;
}

// ---- the holder -----------------------------------------------------------------------------------------------------

// Starts a worker. Returns false, with an error number, if the system gives no thread. The program's signal handlers
// run in the program's own threads, except handlers of faults: without them, a worker's own fault would end the
// process. The worker may run on all processors of the process, not only on the processors of the thread with the
// first work.
bool Team::start(int number, int *error)
{
    workers_[number].team = this;
    workers_[number].number = number;
    workers_[number].seen = word_.load(std::memory_order_relaxed) / kOneJob;
    pthread_attr_t attributes;
    if ((*error = pthread_attr_init(&attributes))) return false;
    pthread_attr_setstacksize(&attributes, kStackBytes);
    cpu_set_t processors;
    if (sched_getaffinity(getpid(), sizeof(processors), &processors) == 0)
        pthread_attr_setaffinity_np(&attributes, sizeof(processors), &processors);
    {
        const kernels::SignalsBlocked blocked;
        *error =
            pthread_create(&workers_[number].thread, &attributes, thread_main, &workers_[number]);
    }
    pthread_attr_destroy(&attributes);
    return *error == 0;
}

int Team::resize(int threads, int *error)
{
    *error = 0;
    threads = std::clamp(threads, 1, kMostThreads);
    wanted_.store(threads);
    if (threads < size_) {
        word_.fetch_add(kOneJob);  // no worker falls asleep on the old word
        sleepers_.fetch_sub(static_cast<int>(futex(word_, FUTEX_WAKE_BITSET, INT_MAX, kForWork)));
        for (int number = threads; number < size_; number++)
            pthread_join(workers_[number].thread, nullptr);
        size_ = threads;
    }
    while (size_ < threads && start(size_, error)) size_++;
    return size_;
}

// Runs the share's next part, and returns whether there was a part. A thread gets its slot with its first part, so
// threads without parts need no memory.
bool Team::run_next(Share &share, int &slot)
{
    if (share.next.load(std::memory_order_relaxed) >= share.end) return false;
    int64_t part = share.next.fetch_add(1, std::memory_order_relaxed);
    if (part >= share.end) return false;
    if (slot < 0) slot = slots_.fetch_add(1, std::memory_order_relaxed);
    fn_(context_, part, slot);
    return true;
}

int64_t Team::work(int thread, int slot)
{
    int64_t parts = 0;
    for (int i = 0; i < size_; i++)
        while (run_next(shares_[(thread + i) % size_], slot)) parts++;
    return parts;
}

// Waits for the workers inside: each has a part. The holder polls for the end and then sleeps, so its processor is
// free for the thread with the part. The holder has run `parts` since `begin`.
void Team::await_last(int64_t begin, int64_t parts)
{
    if (!(word_.fetch_and(~kOpen, std::memory_order_acquire) & kInside)) return;
    int64_t start = now_ns(), now = start, most = is_machine_busy() ? kShortPoll : kLongPoll / 2;
    for (int i = 1; word_.load(std::memory_order_acquire) & kInside; i++) {
        relax();
        if (i % 16) continue;
        now = now_ns();
        if (now - start > most) break;
    }
    uint32_t word = word_.fetch_or(kHolderSleeps, std::memory_order_acquire) | kHolderSleeps;
    for (; word & kInside; word = word_.load(std::memory_order_acquire))
        futex(word_, FUTEX_WAIT_BITSET, word, kForEnd);
    now = now_ns();
    const double one = parts ? (double)(start - begin) / (double)parts : 0,
                 usual = (parts > 1 ? kPartsToWait : kPartsToWaitOfOne) * one;
    if ((double)(now - start) > std::max((double)kLongWait, usual)) note_busy(now);
}

void Team::run(int64_t count, ChunkFn fn, void *context)
{
    int64_t dealt = std::min<int64_t>(count, size_);
    for (int i = 0; i < size_; i++) {
        int64_t begin = i < dealt ? count * i / dealt : 0;
        shares_[i].next.store(begin, std::memory_order_relaxed);
        shares_[i].end = i < dealt ? count * (i + 1) / dealt : 0;
    }
    slots_.store(0, std::memory_order_relaxed);
    fn_ = fn;
    context_ = context;
    wakes_on_ = dealt - 1 > kWakesAtOnce;
    uint32_t word = word_.load(std::memory_order_relaxed);
    word_.exchange(((word & ~kHolderSleeps) + kOneJob) | kOpen);
    int slot = -1, helpers = static_cast<int>(std::min<int64_t>(dealt - 1, kWakesAtOnce));
    const int64_t begin = now_ns();
    int64_t parts = 0;
    if (!is_machine_busy()) {
        wake(helpers);
    } else {  // the first part tells what the rest is worth
        parts = run_next(shares_[0], slot);
        if (!parts || (now_ns() - begin) * (count - 1) > kWorthWaking) wake(helpers);
    }
    await_last(begin, parts + work(0, slot));
}

void Team::forget()
{
    word_.store(0);
    sleepers_.store(0);
    wanted_.store(1);
    busy_until_.store(0);
    last_sign_.store(0);
    size_ = 1;
}

}  // namespace yoke::cpu
