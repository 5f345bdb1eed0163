// fork.h: keeps the library usable in a child made by fork().
//
// A child has a single thread. Locks held by other threads at the fork would stay locked for ever. Therefore every
// briefly held lock of the core is a yoke::Mutex: the fork waits until all such locks are free, and the child gets
// them free. Work that may take long, or may itself fork (a driver's start), uses a Once instead; a fork does not
// wait for a Once.
#pragma once

#include <pthread.h>
#include <atomic>
#include <mutex>

namespace yoke {

// A lock of higher rank may be taken while one of lower rank is held, never the other way round.
enum class LockRank : int { kGrowth, kDevices, kCaches, kMemory, kBlocks, kOther, kConfig, kLog };

// std::mutex held by a fork. Construction and destruction take a lock of their own, so do neither while holding a
// Mutex.
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

// Initialisation that runs once; other threads wait for the end. If an initialisation throws, a caller may try again.
// If an initialisation calls itself, or was interrupted by a fork, the call raises an error instead of hanging.
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

// Scope in which the calling thread loads a library. A fork waits for the end of the scope, since the loader of a
// child made meanwhile would be half changed. The fork waits at most kLoadingWait; after that, the child loads no
// library.
class Loading {
public:
    Loading();
    ~Loading();
    Loading(const Loading &) = delete;
    Loading &operator=(const Loading &) = delete;
};
inline constexpr int kLoadingWait = 2;  // seconds
bool is_loader_lost() noexcept;

// Returns a value made at first use and kept for ever. Two threads may both make a value; the first value is kept. So
// no thread waits here for another thread, which may be missing in a forked child.
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

// Returns true in a child forked after mark_process_used().
inline bool is_forked_child() noexcept
{
    return detail::forked_child.load(std::memory_order_relaxed);
}

// Notes that each later fork of this process makes a forked child. Called when the first backend opens.
void mark_process_used() noexcept;

// Registers `hook` to run in every later forked child, after the child's locks are free. Raises YOKE_E_INTERNAL if
// there are already sixteen other hooks.
void on_fork_child(void (*hook)());

}  // namespace yoke
