#include "core/base/fork.h"

#include "core/base/error.h"

#include <time.h>
#include <new>

namespace yoke {

constinit std::atomic<bool> detail::forked_child{false};

namespace {

std::atomic<bool> process_used{false};

constexpr int kMaxHooks = 16;
std::atomic<void (*)()> child_hooks[kMaxHooks];

// ---- the loader -----------------------------------------------------------------------------------------------------

constinit std::mutex loader;  // held by who loads a library, and by a fork
std::atomic<bool> loader_lost{false};
constinit thread_local bool is_loading __attribute__((tls_model("initial-exec"))) = false;
bool loader_held = false;  // by the fork under way, which holds MutexList's lock

// Takes the loader's lock; returns false if the lock is not free within kLoadingWait. Tries every millisecond: the
// thread sanitizer does not know locks with a deadline, and would report the unlock.
bool try_loader()
{
    for (int asked = 0; asked < kLoadingWait * 1000; ++asked) {
        if (loader.try_lock()) return true;
        const timespec pause = {0, 1000000};
        nanosleep(&pause, nullptr);
    }
    return false;
}

// Tries to take the loader's lock, unless this thread is loading a library and already holds the lock.
void hold_loader()
{
    loader_held = !is_loading && try_loader();
}

void free_loader()
{
    if (loader_held) loader.unlock();
}

void free_loader_in_child()
{
    if (loader_held) return loader.unlock();
    new (&loader) std::mutex;  // its holder is not here
    is_loading = false;
    loader_lost.store(true);
}

}  // namespace

// List of all mutexes in the order used by a fork: by rank.
struct MutexList {
    static inline constinit Mutex *first = nullptr;
    static inline constinit std::mutex guard{};

    static void add(Mutex &mutex)
    {
        const std::lock_guard lock(guard);
        static const int registered = pthread_atfork(lock_all, unlock_all, unlock_in_child);
        (void)registered;
        Mutex **place = &first;
        while (*place && (*place)->rank_ <= mutex.rank_) place = &(*place)->next_;
        mutex.next_ = *place;
        *place = &mutex;
    }
    static void remove(Mutex &mutex)
    {
        const std::lock_guard lock(guard);
        Mutex **place = &first;
        while (*place != &mutex) place = &(*place)->next_;
        *place = mutex.next_;
    }
    static void lock_all()
    {
        guard.lock();
        hold_loader();
        for (Mutex *mutex = first; mutex; mutex = mutex->next_) mutex->lock();
    }
    static void unlock_all()
    {
        for (Mutex *mutex = first; mutex; mutex = mutex->next_) mutex->unlock();
        free_loader();
        guard.unlock();
    }
    static void unlock_in_child()
    {
        for (Mutex *mutex = first; mutex; mutex = mutex->next_) mutex->unlock();
        free_loader_in_child();
        guard.unlock();
        if (!process_used.load()) return;
        detail::forked_child.store(true);
        for (const auto &hook : child_hooks)
            if (auto *run = hook.load()) run();
    }
};

Mutex::Mutex(LockRank rank) noexcept : rank_(rank)
{
    MutexList::add(*this);
}

Mutex::~Mutex()
{
    MutexList::remove(*this);
}

Once::Turn::Turn(Once &owner, const char *what) : once(owner)
{
    if (once.running_.load() && pthread_equal(once.runner_.load(), pthread_self()))
        fail(
            is_forked_child() ? YOKE_E_FORKED : YOKE_E_STATE,
            "%s: a callback that runs during its start used it again, before the start was complete; the callback must not use it",
            what);
    if (!is_forked_child()) {
        once.mutex_.lock();
    } else {
        // The thread that held the lock may not exist in this process, so do not wait for ever.
        constexpr int kTries = 200;
        const timespec pause{0, 10'000'000};
        for (int i = 0; !once.mutex_.try_lock(); ++i) {
            if (i == kTries)
                fail(
                    YOKE_E_FORKED,
                    "%s: the process forked while another thread was starting it; start it before forking, or use exec or spawn in place of fork",
                    what);
            nanosleep(&pause, nullptr);
        }
    }
    once.runner_.store(pthread_self());
    once.running_.store(true);
}

Once::Turn::~Turn()
{
    once.running_.store(false);
    once.mutex_.unlock();
}

Loading::Loading()
{
    loader.lock();
    is_loading = true;
}

Loading::~Loading()
{
    is_loading = false;
    loader.unlock();
}

bool is_loader_lost() noexcept
{
    return loader_lost.load();
}

void mark_process_used() noexcept
{
    process_used.store(true);
}

void on_fork_child(void (*hook)())
{
    for (auto &slot : child_hooks) {
        void (*expected)() = nullptr;
        if (slot.compare_exchange_strong(expected, hook) || expected == hook) return;
    }
    fail(
        YOKE_E_INTERNAL,
        "at most %d functions can be registered to run in a forked child; please report this error",
        kMaxHooks);
}

}  // namespace yoke
