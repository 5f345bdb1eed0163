// fork.h: what keeps the library whole in a child that was made by fork().
//
// A child has one thread. Locks that other threads held at the fork would stay locked for ever, so
// every lock of the core that is held only for a moment is a yoke::Mutex: the fork waits until all
// of them are free and the child gets them free. Work that may take long, or that may itself fork
// (a driver's start), is guarded by a Once instead, which no fork waits for.
#pragma once

#include <pthread.h>
#include <atomic>
#include <mutex>

namespace yoke {

// A lock of higher rank may be taken while one of lower rank is held, never the other way round.
enum class LockRank : int { kGrowth, kDevices, kCaches, kMemory, kBlocks, kOther, kConfig, kLog };

// A std::mutex that a fork takes along. Making and ending one takes a lock of its own: never do
// either while holding a Mutex.
class Mutex {
public:
    explicit Mutex(LockRank rank) noexcept;
    ~Mutex();
    Mutex(const Mutex &) = delete;
    Mutex &operator=(const Mutex &) = delete;

    void lock() { mutex_.lock(); }
    void unlock() { mutex_.unlock(); }
    bool try_lock() { return mutex_.try_lock(); }

private:
    friend struct MutexList;
    std::mutex mutex_;
    LockRank rank_;
    Mutex *next_ = nullptr;
};

// Runs an initialisation once; other threads wait for it. An initialisation that throws may be tried
// again. One that calls itself, or was cut in half by a fork, is an error instead of a hang.
class Once {
public:
    template <class F>
    void run(const char *what, F &&initialise)
    {
        if (done_.load(std::memory_order_acquire)) return;
        const Turn turn(*this, what);
        if (done_.load(std::memory_order_relaxed)) return;
        initialise();
        done_.store(true, std::memory_order_release);
    }
    bool done() const noexcept { return done_.load(std::memory_order_acquire); }

private:
    struct Turn {
        Turn(Once &owner, const char *what);
        ~Turn();
        Once &once;
    };
    std::atomic<bool> done_{false};
    std::atomic<bool> running_{false};
    std::atomic<pthread_t> runner_{};
    std::mutex mutex_;
};

// In its scope the calling thread loads a library. A fork waits for that, since the loader of a child that was made
// meanwhile is half changed; but no longer than kLoadingWait, and the child then loads no library any more.
class Loading {
public:
    Loading();
    ~Loading();
    Loading(const Loading &) = delete;
    Loading &operator=(const Loading &) = delete;
};
inline constexpr int kLoadingWait = 2;  // seconds
bool is_loader_lost() noexcept;

// A value made at first use and kept for ever. Two threads may both make it; the first one is kept. So
// no thread waits for another here, which in a forked child may not exist.
template <class T, class F>
T &make_once(std::atomic<T *> &place, F &&make)
{
    if (T *known = place.load(std::memory_order_acquire)) return *known;
    T *made = make();
    T *first = nullptr;
    if (place.compare_exchange_strong(first, made)) return *made;
    delete made;
    return *first;
}

namespace detail {
extern std::atomic<bool> forked_child;
}  // namespace detail

// True in a child of the process in which the library was first used.
inline bool is_forked_child() noexcept
{
    return detail::forked_child.load(std::memory_order_relaxed);
}

// From now on a fork of this process makes a forked child. Called when the first backend opens.
void mark_process_used() noexcept;

// Runs `hook` in every later child, after its locks are free. At most sixteen hooks.
void on_fork_child(void (*hook)());

}  // namespace yoke
